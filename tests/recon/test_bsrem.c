/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * BSREM with the relative difference prior on a small ring, compared with the papers' formulas in double, summed over
 * the matrix's elements and over all pairs of voxels. Argument: the backend. */
#include "ring.h"

/* A prior about as strong as the data, with weights that vary. */
static struct penalised {
    struct matrix matrix;
    double sensitivity[NUM_VOXELS], level;
    float kappa[NUM_VOXELS];
    lr_vector weights; /* kappa */
    lr_rdp prior;
} p;

static int penalise(void **state)
{
    double largest = 0.0, all = 0.0, counts = 0.0; /* counts without the additive term */
    set_up(state);
    /* With a stored matrix, hundreds of projections take little time. */
    if (test_backend_is("native")) s.op = open_operator("native", LR_STORE_YES);
    draw_counts(50.0);
    p = (struct penalised){.matrix = read_matrix()};
    for (int64_t l = 0; l < p.matrix.num_lors; l++) counts += (double)s.data->values[l] - s.additive[l];
    for (int v = 0; v < NUM_VOXELS; v++) {
        for (int64_t l = 0; l < p.matrix.num_lors; l++)
            p.sensitivity[v] += p.matrix.elements[v * p.matrix.num_lors + l];
        largest = fmax(largest, p.sensitivity[v]);
        all += p.sensitivity[v];
        p.kappa[v] = (float)(0.75 + 0.25 * cos(v));
    }
    p.level = counts / all;
    p.weights = lr_vector_of_floats(p.kappa, NUM_VOXELS);
    p.prior = (lr_rdp){.beta = 0.2 * largest, .gamma = 2.0, .epsilon = 0.01 * p.level, .kappa = &p.weights};
    return 0;
}

static lr_recon_params bsrem(int iterations, int subsets)
{
    return filled(lr_recon_params, .op = s.op, .data = &s.counts, .additive = &s.terms, .iterations = iterations,
                  .subsets = subsets, .algorithm = LR_ALGORITHM_BSREM, .prior = &p.prior, .log = &s.log.log);
}

/* --- the papers' formulas --- */

/* Edge along x divided by the distance of two neighbours, times their kappas; 0 for other pairs. */
static double pair_weight(int j, int k)
{
    const lr_grid *grid = &s.fixture.grid;
    const int d[3] = {abs(j % NX - k % NX), abs(j / NX % NY - k / NX % NY), abs(j / NX / NY - k / NX / NY)};
    double square = 0.0;
    for (int axis = 0; axis < 3; axis++) square += pow(d[axis] * grid->voxel_mm[axis], 2);
    return j == k || d[0] > 1 || d[1] > 1 || d[2] > 1 ? 0.0
                                                      : grid->voxel_mm[0] / sqrt(square) * p.kappa[j] * p.kappa[k];
}

/* dR / dx_j; *weight becomes the sum of the pairs' weights. */
static double slope(const double *x, int j, double *weight)
{
    double sum = 0.0;
    *weight = 0.0;
    for (int k = 0; k < NUM_VOXELS; k++) {
        const double w = pair_weight(j, k), d = x[j] - x[k], size = p.prior.gamma * fabs(d);
        if (w > 0.0) {
            const double n = x[j] + x[k] + size + p.prior.epsilon;
            sum += w * d * (size + x[j] + 3.0 * x[k] + 2.0 * p.prior.epsilon) / (n * n);
            *weight += w;
        }
    }
    return sum;
}

static double objective(const float *image)
{
    double likelihood = 0.0, roughness = 0.0;
    for (int64_t l = 0; l < p.matrix.num_lors; l++) {
        double e = s.additive[l];
        for (int v = 0; v < NUM_VOXELS; v++) e += p.matrix.elements[v * p.matrix.num_lors + l] * image[v];
        likelihood += e > 0.0 ? s.data->values[l] * log(e) - e : 0.0;
    }
    for (int j = 0; j < NUM_VOXELS; j++) {
        for (int k = 0; k < j; k++) {
            const double d = (double)image[j] - image[k], w = pair_weight(j, k);
            roughness +=
                w > 0.0 ? w * d * d / ((double)image[j] + image[k] + p.prior.gamma * fabs(d) + p.prior.epsilon) : 0.0;
        }
    }
    return likelihood - p.prior.beta * roughness;
}

/* Parameters of the reference implementation. */
struct plain {
    const int32_t *subset_of; /* [LORs]; NULL = all are in subset 0 */
    double relaxation;
    int subset, subsets;
};

/* Gradient of a subset's part of the log-likelihood, without the prior. */
static void find_gradient(const struct plain *plain, const double *x, double *gradient)
{
    memset(gradient, 0, NUM_VOXELS * sizeof(*gradient));
    for (int64_t l = 0; l < p.matrix.num_lors; l++) {
        const double *column = p.matrix.elements + l;
        double e = s.additive[l];
        if (plain->subset_of != NULL && plain->subset_of[l] != plain->subset) continue;
        for (int v = 0; v < NUM_VOXELS; v++) e += column[v * p.matrix.num_lors] * x[v];
        for (int v = 0; v < NUM_VOXELS; v++)
            gradient[v] += e > 0.0 ? column[v * p.matrix.num_lors] * (s.data->values[l] / e - 1.0) : 0.0;
    }
}

/* Images are stored in single precision between updates, of which there are eight at most: the tolerance is 3e-5,
 * since the gradient has differences of neighbours. */
static void test_it_is_the_papers_formula(void **state)
{
    int32_t order[4];
    for (int k = 0; k < 3; k++) {
        const int subsets = 1 << k;
        lr_osem_visits(subsets, order);
        int32_t *subset_of = keep_object(fixture_deal(s.fixture.lors, subsets), free);
        lr_recon_params params = bsrem(2, subsets);
        params.relaxation = 0.8;
        params.relaxation_fall = 0.5;
        give_data(&params, k == 1);
        for (int v = 0; v < NUM_VOXELS; v++) s.plain[v] = p.sensitivity[v] > 0.0 ? p.level : 0.0;
        for (int n = 0; n < 2 * subsets; n++) {
            const struct plain plain = {subset_of, 0.8 / (1.0 + 0.5 * (n / subsets)), order[n % subsets], subsets};
            double *x = s.plain;
            const double beta = p.prior.beta, floor = 1e-6 * p.level;
            double gradient[NUM_VOXELS], before[NUM_VOXELS], weight;
            memcpy(before, x, sizeof(before));
            find_gradient(&plain, x, gradient);
            for (int v = 0; v < NUM_VOXELS; v++) {
                const double penalty = beta / plain.subsets * slope(before, v, &weight);
                const double scale = plain.subsets / (p.sensitivity[v] + 2.0 * beta * weight);
                if (p.sensitivity[v] > 0.0) {
                    x[v] += plain.relaxation * fmax(x[v], floor) * scale * (gradient[v] - penalty);
                    x[v] = fmax(x[v], 0.0);
                }
            }
        }
        assert_ok(reconstruct(&params, s.image));
        const double off = difference(s.image, s.plain);
        print_message("%d subsets: %.2g\n", subsets, off);
        assert_true(off < 3e-5);
    }
}

/* --- laws --- */

struct course {
    double objective[1000];
    int count;
};

static lr_status follow(void *user, const lr_iteration *done)
{
    struct course *course = user;
    assert_true(done->has_fit && (done->penalty > 0.0 || done->number == 1));
    course->objective[course->count++] = done->log_likelihood - done->penalty;
    return LR_OK;
}

static void test_subsets_meet_at_the_maximum(void **state)
{
    static struct course course;
    course.count = 0;
    lr_recon_params params = bsrem(600, 1);
    params.iteration = follow;
    params.user = &course;
    assert_ok(reconstruct(&params, s.other));
    /* Checks that the image is at the maximum of the objective: in each voxel the slope is 0, or the voxel is 0 and
     * the slope is negative. The test is the length of the next step relative to the largest voxel. */
    const struct plain all = {.subsets = 1};
    double x[NUM_VOXELS], gradient[NUM_VOXELS], weight, worst = 0.0, largest = 0.0;
    widen(s.other, x);
    find_gradient(&all, x, gradient);
    for (int v = 0; v < NUM_VOXELS; v++) {
        const double left = gradient[v] - p.prior.beta * slope(x, v, &weight);
        const double scale = p.sensitivity[v] + 2.0 * p.prior.beta * weight;
        assert_true(s.other[v] >= 0.0f);
        largest = fmax(largest, x[v]);
        if (p.sensitivity[v] > 0.0)
            worst = fmax(worst, fmax(x[v], 1e-3 * p.level) * (left > 0.0 || x[v] > 0.0) * fabs(left) / scale);
    }
    print_message("step that is left: %.2g of the largest voxel\n", worst / largest);
    assert_true(worst < 1e-5 * largest);
    const double best = course.objective[course.count - 1];
    for (int k = 50; k < course.count; k++) /* sums in single precision on the way */
        assert_true(course.objective[k] >= course.objective[k - 1] - 1e-9 * fabs(best));
    assert_true(course.objective[50] > course.objective[0]);
    params.iteration = NULL;
    params.iterations = 1000;
    params.relaxation_fall = 0.07;
    for (params.subsets = 2; params.subsets <= 4; params.subsets += 2) {
        assert_ok(reconstruct(&params, s.image));
        const double off = difference(s.image, s.other);
        print_message("%d subsets off by %.2g; objective %.10g, of one %.10g\n", params.subsets, off,
                      objective(s.image), objective(s.other));
        assert_true(off < 1e-3);
    }
}

/* The objective that an iteration reports is that of the image at its beginning, and equals the formulas. */
static void test_the_objective_is_told(void **state)
{
    static struct course course;
    lr_recon_params params = bsrem(3, 1);
    assert_ok(reconstruct(&params, s.image));
    course.count = 0;
    params.initial = &s.image_vector;
    params.iterations = 1;
    params.iteration = follow;
    params.user = &course;
    assert_ok(reconstruct(&params, s.other));
    assert_close(course.objective[0], objective(s.image), 1e-6);
}

static lr_status keep_first(void *user, const lr_iteration *done)
{
    lr_iteration *first = user;
    *first = done->number == 1 ? *done : *first;
    return LR_OK;
}

/* The additive term has two thirds of the counts, in dense and sparse data. */
static void test_the_first_image_gives_what_was_measured(void **state)
{
    for (int64_t l = 0; l < p.matrix.num_lors; l++) s.additive[l] *= 100.0f;
    draw_counts(5.0);
    double additive = 0.0, counts = 0.0;
    for (int64_t l = 0; l < p.matrix.num_lors; l++) {
        additive += s.additive[l];
        counts += s.data->values[l];
    }
    print_message("%g of %g counts are additive\n", additive, counts);
    assert_true(additive > 0.3 * counts && additive < 0.9 * counts);
    for (int k = 0; k < 2; k++) {
        lr_iteration first = {0};
        lr_recon_params params = bsrem(1, 1);
        give_data(&params, k == 1);
        params.iteration = keep_first;
        params.user = &first;
        assert_ok(reconstruct(&params, s.image));
        assert_close(first.estimated_counts, first.measured_counts, 1e-5);
    }
}

/* BSREM without a prior, or with one of strength 0, equals ML-EM if it has one subset and full steps. With four
 * subsets and falling steps it converges to the same image, faster than ML-EM. */
static void test_without_strength_it_is_mlem(void **state)
{
    const float *ones = kept_equal_floats(NUM_VOXELS, 1000.0f);
    p.prior.beta = 0.0;
    lr_recon_params params = bsrem(8, 1);
    params.initial = vector_of(ones, NUM_VOXELS);
    lr_recon_params em = params;
    em.algorithm = LR_ALGORITHM_OSEM;
    em.prior = NULL;
    assert_ok(reconstruct(&em, s.other));
    for (int k = 0; k < 2; k++) {
        params.prior = k == 0 ? &p.prior : NULL;
        assert_ok(reconstruct(&params, s.image));
        assert_true(difference(s.image, s.other) < 2e-5);
    }
    params.subsets = 4;
    params.iterations = em.iterations = 40;
    params.relaxation_fall = 0.1;
    assert_ok(reconstruct(&em, s.other), reconstruct(&params, s.image));
    const double gained = objective(s.other) - objective(ones), more = objective(s.image) - objective(s.other);
    print_message("ML-EM gains %.8g in 40 iterations, BSREM %.3g more\n", gained, more);
    assert_true(more > 0.0 && more < 1e-3 * gained);
}

/* The data have very few counts, and the steps are too long. Voxels that became 0 grow again if the data require it. */
static void test_no_voxel_becomes_negative(void **state)
{
    draw_counts(0.02);
    lr_recon_params params = bsrem(6, 4);
    give_data(&params, true);
    params.relaxation = 3.0;
    p.prior.beta *= 0.01;
    assert_ok(reconstruct(&params, s.image));
    int zeros = 0;
    for (int v = 0; v < NUM_VOXELS; v++) {
        assert_true(s.image[v] >= 0.0f);
        zeros += s.image[v] == 0.0f && p.sensitivity[v] > 0.0;
    }
    print_message("%d voxels at 0\n", zeros);
    assert_true(zeros > 0);
    draw_counts(50.0);
    params = bsrem(60, 1);
    params.initial = &s.image_vector;
    assert_ok(reconstruct(&params, s.other));
    for (int v = 0; v < NUM_VOXELS; v++)
        assert_true(s.image[v] > 0.0f || p.sensitivity[v] == 0.0 || s.other[v] > s.image[v]);
}

/* When a run is continued, its steps go on decreasing. */
static void test_it_goes_on_where_it_was(void **state)
{
    lr_recon_params params = bsrem(4, 2);
    params.relaxation_fall = 1.5;
    assert_ok(reconstruct(&params, s.image));
    widen(s.image, s.plain);
    params.iterations = 2;
    assert_ok(reconstruct(&params, s.other));
    params.initial = &s.other_vector;
    params.iterations_before = 2;
    assert_ok(reconstruct(&params, s.image));
    assert_true(difference(s.image, s.plain) < 1e-5);
}

/* --- the prior alone --- */

static void test_the_prior_is_that_of_pairs(void **state)
{
    double x[NUM_VOXELS], found[NUM_VOXELS], value, weight, sum = 0.0;
    for (int v = 0; v < NUM_VOXELS; v++) x[v] = 1.5 + sin(2.0 * v);
    const lr_vector image = lr_vector_of_doubles(x, NUM_VOXELS);
    const lr_grid *grid = &s.fixture.grid;
    assert_ok(lr_rdp_value(&p.prior, grid, &image, &value),
              lr_rdp_gradient(&p.prior, grid, &image, vector_of(found, NUM_VOXELS)));
    for (int j = 0; j < NUM_VOXELS; j++) {
        assert_true(fabs(found[j] - slope(x, j, &weight)) < 1e-12);
        for (int k = 0; k < j; k++) {
            const double d = x[j] - x[k];
            sum += pair_weight(j, k) * d * d / (x[j] + x[k] + p.prior.gamma * fabs(d) + p.prior.epsilon);
        }
    }
    assert_close(value, sum, 1e-12);
    p.prior.gamma = -1.0;
    assert_int_equal(lr_rdp_value(&p.prior, grid, &image, &value), LR_USAGE);
}

/* --- bad input --- */

static void expect(const lr_recon_params *params, const char *words)
{
    assert_int_not_equal(reconstruct(params, s.image), LR_OK);
    assert_says(s.log.error, words);
    s.log.error[0] = '\0';
}

static void test_what_is_refused(void **state)
{
    lr_recon_params params = bsrem(1, 1);
    spoilt(params.relaxation = -0.5, expect(&params, "a relaxation of -0.5"));
    params.relaxation = 0.0;
    spoilt(p.prior.beta = NAN, expect(&params, "beta of the prior is nan"));
    p.prior.beta = 1.0;
    spoilt(p.prior.epsilon = -3.0, expect(&params, "epsilon of the prior is -3"));
    p.prior.epsilon = 0.0;
    spoilt(p.kappa[7] = -1.0f, expect(&params, "voxel 7 of the kappa image is -1"));
    p.kappa[7] = 1.0f;
    spoilt(params.algorithm = LR_ALGORITHM_OSEM, expect(&params, "a prior belongs to BSREM"));
    spoilt(params.algorithm = (lr_recon_algorithm)3, expect(&params, "give 0 to 2"));
}

#define PENALISED(test) CASE_AFTER(penalise, test)
int main(int argc, char **argv)
{
    if (!test_backend_is_usable(argc, argv, "cpu")) return 77;
    const struct CMUnitTest of_the_backend[] = {EACH(PENALISED, test_it_is_the_papers_formula,
                                                     test_the_objective_is_told,
                                                     test_the_first_image_gives_what_was_measured)};
    const struct CMUnitTest laws[] = {EACH(
        PENALISED, test_subsets_meet_at_the_maximum, test_without_strength_it_is_mlem, test_no_voxel_becomes_negative,
        test_it_goes_on_where_it_was, test_the_prior_is_that_of_pairs, test_what_is_refused)};
    int failed = cmocka_run_group_tests(of_the_backend, NULL, NULL);
    if (test_backend_is("native")) /* hundreds of projections, fastest with native */
        failed += cmocka_run_group_tests(laws, NULL, NULL);
    return failed;
}
