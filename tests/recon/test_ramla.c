/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Block RAMLA on a small ring, compared with the paper's formula in double, summed over the matrix's elements.
 * Argument: the backend. */
#include "operator/updates.h"
#include "ring.h"

static lr_recon_params ramla(int iterations, int subsets)
{
    return filled(lr_recon_params, .op = s.op, .data = &s.counts, .iterations = iterations, .subsets = subsets,
                  .algorithm = LR_ALGORITHM_RAMLA, .log = &s.log.log);
}

/* --- the paper's formula --- */

/* Parameters of the reference implementation. */
struct plain {
    const struct matrix *matrix;
    const float *additive; /* or NULL */
    int32_t *subset_of;    /* [LORs] */
    bool own_steps;
    double relaxation, fall;
    int iterations, subsets;
};

/* sum_i a_ij over the LORs i of a block. */
static double find_sensitivity(const struct plain *plain, int block, int v)
{
    const int64_t num_lors = plain->matrix->num_lors;
    double sum = 0.0;
    for (int64_t l = 0; l < num_lors; l++)
        sum += plain->subset_of[l] == block ? plain->matrix->elements[v * num_lors + l] : 0.0;
    return sum;
}

/* Images are stored in single precision between updates, of which there are twelve at most: the tolerance is 2e-5. */
static void check_against_plain(const struct matrix *matrix, int subsets, const bool how[2])
{
    const bool has_additive = how[0];
    struct plain plain =
        filled(struct plain, .matrix = matrix, .additive = has_additive ? s.additive : NULL, .own_steps = how[1],
               .subset_of = keep_object(fixture_deal(s.fixture.lors, subsets), free), .relaxation = 0.7, .fall = 0.5,
               .iterations = 3, .subsets = subsets);
    int32_t order[MOST_SUBSETS];
    double all_seen = 0.0;
    lr_osem_visits(plain.subsets, order);
    for (int v = 0; v < NUM_VOXELS; v++) {
        double seen = 0.0;
        for (int64_t l = 0; l < plain.matrix->num_lors; l++)
            seen += plain.matrix->elements[v * plain.matrix->num_lors + l];
        s.plain[v] = seen > 0.0 ? 1.0 : 0.0;
        all_seen += seen;
    }
    double counts = 0.0; /* without the additive term */
    for (int64_t l = 0; l < s.data->count; l++)
        counts += (double)s.data->values[l] - (plain.additive != NULL ? plain.additive[l] : 0.0f);
    for (int v = 0; v < NUM_VOXELS; v++) s.plain[v] *= counts / all_seen;
    for (int n = 0; n < plain.iterations; n++) {
        const double relaxation = plain.relaxation / (1.0 + plain.fall * n);
        for (int k = 0; k < plain.subsets; k++) {
            /* x_j (1 + lambda sum_i a_ij (y_i / e_i - 1)) over the LORs i of a block. lambda is `relaxation`
             * divided by the largest sum_i a_ij of all voxels, or by the voxel's own sum over all blocks. */
            const int64_t num_lors = plain.matrix->num_lors;
            double *ratio = kept_doubles(num_lors), sum[NUM_VOXELS], largest = 0.0;
            for (int64_t l = 0; l < num_lors; l++) {
                double e = plain.additive != NULL ? plain.additive[l] : 0.0;
                for (int v = 0; v < NUM_VOXELS; v++) e += plain.matrix->elements[v * num_lors + l] * s.plain[v];
                ratio[l] = e > 0.0 ? s.data->values[l] / e : 1.0;
            }
            for (int v = 0; v < NUM_VOXELS; v++) {
                sum[v] = 0.0;
                for (int64_t l = 0; l < num_lors; l++)
                    sum[v] += plain.subset_of[l] == order[k]
                                  ? plain.matrix->elements[v * num_lors + l] * (ratio[l] - 1.0)
                                  : 0.0;
                largest = fmax(largest, find_sensitivity(&plain, order[k], v));
            }
            for (int v = 0; v < NUM_VOXELS; v++) {
                double own = plain.own_steps ? 0.0 : largest;
                for (int i = 0; plain.own_steps && i < plain.subsets; i++)
                    own = fmax(own, find_sensitivity(&plain, i, v));
                s.plain[v] *= 1.0 + (own > 0.0 ? relaxation / own * sum[v] : 0.0);
            }
        }
    }
    for (int k = 0; k < 4; k++) { /* data are dense or sparse, the additive term is given as data or as a source */
        lr_recon_params params = ramla(plain.iterations, subsets);
        params.relaxation = plain.relaxation;
        params.relaxation_fall = plain.fall;
        params.own_steps = plain.own_steps;
        give_data(&params, k % 2 != 0);
        params.additive = has_additive && k < 2 ? &s.terms : NULL;
        if (has_additive && k >= 2) params.additive_source = source_of_values(s.additive);
        assert_ok(reconstruct(&params, s.image));
        const double off = difference(s.image, s.plain);
        print_message("%d subsets, way %d: %.2g\n", subsets, k, off);
        assert_true(off < 2e-5);
    }
}

static void test_it_is_the_papers_formula(void **state)
{
    const struct matrix matrix = read_matrix();
    for (int subsets = 1; subsets <= MOST_SUBSETS; subsets++)
        check_against_plain(&matrix, subsets, (const bool[2]){true, subsets % 2 == 0});
    for (int64_t l = 0; l < s.data->count; l++) s.additive[l] = 0.0f;
    draw_counts(50.0);
    check_against_plain(&matrix, 3, (const bool[2]){false, false});
}

/* One iteration with one block, and a relaxation of lambda times the largest sensitivity, gives x (1 + lambda (A^T
 * (y / (A x + b)) - A^T 1)), which is computed here by projections. */
static void test_one_block_is_the_plain_formula(void **state)
{
    float sensitivity[NUM_VOXELS], back[NUM_VOXELS], initial[NUM_VOXELS], largest = 0.0f;
    float *data = kept_floats(s.data->count);
    assert_ok(array_sensitivity(s.op, sensitivity));
    for (int v = 0; v < NUM_VOXELS; v++) {
        initial[v] = (float)(100 + v % 17);
        largest = fmaxf(largest, sensitivity[v]);
    }
    const double lambda = 0.35 / (double)largest;
    assert_ok(array_forward(s.op, initial, data));
    for (int64_t l = 0; l < s.data->count; l++) data[l] = s.data->values[l] / (data[l] + s.additive[l]);
    assert_ok(array_back(s.op, data, back));
    for (int v = 0; v < NUM_VOXELS; v++) {
        s.plain[v] = initial[v] * (1.0 + lambda * ((double)back[v] - sensitivity[v]));
        s.plain[v] = sensitivity[v] > 0.0f ? s.plain[v] : 0.0;
    }
    lr_recon_params params = ramla(1, 1);
    params.additive = &s.terms;
    params.initial = vector_of(initial, NUM_VOXELS);
    params.relaxation = lambda * (double)largest;
    assert_ok(reconstruct(&params, s.image));
    assert_true(difference(s.image, s.plain) < 2e-6);
}

/* --- laws --- */

/* The data have very few counts, so that the updates of most blocks reduce voxels. */
static void check_no_voxel_becomes_negative(bool is_own)
{
    session_init(test_backend);
    draw_counts(0.02);
    int zeros[2] = {0};
    const double more = is_own ? 1.2 : 4.0; /* own steps of 4 make all voxels 0, and are refused */
    for (int k = 0; k < 2; k++) {
        lr_recon_params params = ramla(6, MOST_SUBSETS);
        give_data(&params, true);
        params.additive = &s.terms;
        params.relaxation = k == 0 ? 1.0 : more;
        params.own_steps = is_own;
        s.log.num_warnings = 0;
        assert_ok(reconstruct(&params, s.image));
        for (int v = 0; v < NUM_VOXELS; v++) {
            assert_true(s.image[v] >= 0.0f);
            zeros[k] += s.image[v] == 0.0f;
        }
        assert_int_equal(s.log.num_warnings, k);
    }
    assert_says(s.log.warning, is_own ? "a relaxation of 1.2, more than 1" : "a relaxation of 4, more than 1");
    print_message("voxels at 0: %d with a relaxation of 1, %d with %g\n", zeros[0], zeros[1], more);
    assert_true(zeros[1] > zeros[0]); /* voxels that would have become negative */
}

static void test_no_voxel_becomes_negative(void **state)
{
    check_no_voxel_becomes_negative(false);
    if (test_backend_is("native")) check_no_voxel_becomes_negative(true);
}

/* Factors in the middle are a twentieth of those at the edge. If each voxel has its own step, the middle converges
 * as fast as with ML-EM; with a common step it does not. */
static void test_own_steps_go_as_far_everywhere(void **state)
{
    if (!test_backend_is("native")) skip();
    const struct matrix matrix = read_matrix();
    for (int64_t l = 0; l < matrix.num_lors; l++) {
        double middle = 0.0, all = 0.0;
        for (int v = 0; v < NUM_VOXELS; v++) {
            const double a = matrix.elements[v * matrix.num_lors + l];
            const bool is_inside = abs(v % NX - NX / 2) < 3 && abs(v / NX % NY - NY / 2) < 3;
            middle += is_inside ? a : 0.0;
            all += a;
        }
        s.factors[l] *= all > 0.0 ? (float)exp(-3.0 * middle / all) : 1.0f;
        s.additive[l] = 0.0f;
    }
    s.op = open_operator(test_backend, LR_STORE_NO);
    draw_counts(50.0);
    lr_recon_params params = ramla(10, 1);
    params.algorithm = LR_ALGORITHM_OSEM;
    assert_ok(reconstruct(&params, s.other));
    double off[2];
    for (int k = 0; k < 2; k++) {
        params = ramla(3, MOST_SUBSETS);
        params.own_steps = k == 1;
        assert_ok(reconstruct(&params, s.image));
        off[k] = difference(s.image, s.other);
    }
    print_message("off ML-EM by %.3g with common steps, by %.3g with own ones\n", off[0], off[1]);
    assert_true(off[1] < 0.5 * off[0]);
}

struct seen {
    int first, count;
};

static lr_status see(void *user, const lr_iteration *done)
{
    struct seen *seen = user;
    assert_int_equal(done->number, seen->first + seen->count++);
    return LR_OK;
}

/* Four iterations equal two iterations followed by two more that start from their image: the relaxation goes on
   decreasing. */
static void test_it_goes_on_where_it_was(void **state)
{
    lr_recon_params params = ramla(4, 3);
    params.relaxation_fall = 1.5;
    assert_ok(reconstruct(&params, s.image));
    widen(s.image, s.plain);
    params.iterations = 2;
    assert_ok(reconstruct(&params, s.other));
    struct seen seen = {.first = 3};
    params.initial = &s.other_vector;
    assert_ok(reconstruct(&params, s.image));
    assert_true(difference(s.image, s.plain) > 1e-3);
    params.iterations_before = 2;
    params.iteration = see;
    params.user = &seen;
    assert_ok(reconstruct(&params, s.image));
    assert_int_equal(seen.count, 2);
    assert_true(difference(s.image, s.plain) < 1e-5);
}

/* Both sides are in single precision and may be added in any order. */
static void test_native_gives_the_same(void **state)
{
    if (!fixture_backend_is_usable("native")) skip();
    lr_operator *ops[2] = {s.op, open_operator("native", LR_STORE_NO)};
    for (int subsets = 2; subsets <= MOST_SUBSETS; subsets += 2) {
        for (int k = 0; k < 2; k++) {
            lr_recon_params params = ramla(4, subsets);
            params.op = ops[k];
            give_data(&params, subsets != 2);
            params.additive = &s.terms;
            params.relaxation_fall = 0.2;
            assert_ok(reconstruct(&params, k == 0 ? s.image : s.other));
        }
        const double off = difference(s.image, s.other);
        print_message("%d subsets: off by %.2g from native\n", subsets, off);
        assert_true(off < 1e-4);
    }
}

/* --- limits of the default relaxation --- */

/* Back-projections are multiplied by this factor. If it is not 1, back is not the transpose of forward, as on a
 * device that loses small numbers among very large ones. */
static float wrong_by = 1.0f;

lr_status __real_lr_project_back(const struct lr_projection *projection, const lr_vector *values, lr_vector *image);
lr_status __wrap_lr_project_back(const struct lr_projection *projection, const lr_vector *values, lr_vector *image);
lr_status __wrap_lr_project_back(const struct lr_projection *projection, const lr_vector *values, lr_vector *image)
{
    lr_status status = __real_lr_project_back(projection, values, image);
    if (status == LR_OK && wrong_by != 1.0f) {
        lr_vector by = {0};
        status = lr_vector_create(&(lr_vector_params){.place = image->place, .count = image->count}, &by);
        status = status == LR_OK ? lr_vector_fill(&by, wrong_by) : status;
        status = status == LR_OK ? lr_vector_multiply(image, &by) : status;
        lr_vector_destroy(&by);
    }
    return status;
}

/* The default is 1 for one subset; with more subsets, a pass reduces a voxel at most by a factor of exp(-10). */
static void test_the_default_is_bounded(void **state)
{
    assert_true(lr_ramla_relaxation(0) == 1.0 && lr_ramla_relaxation(1) == 1.0);
    for (int subsets = 2; subsets <= 1 << 20; subsets *= 2) {
        const double relaxation = lr_ramla_relaxation(subsets);
        assert_true(relaxation > 0.0 && relaxation < lr_ramla_relaxation(subsets - 1));
        assert_true(subsets * log1p(-relaxation) > -10.0);
    }
}

/* An update cannot increase the sum of x by more than lambda times the counts of a subset; an image that grows
   faster is an error. */
static void test_what_explodes_ends(void **state)
{
    lr_recon_params params = ramla(2, MOST_SUBSETS);
    wrong_by = 40.0f;
    s.log.error[0] = '\0';
    const lr_status status = reconstruct(&params, s.image);
    wrong_by = 1.0f;
    assert_int_equal(status, LR_FAILED);
    if (strstr(s.log.error, "the image explodes in iteration 1") == NULL ||
        strstr(s.log.error, "smaller relaxation") == NULL)
        fail_msg("%s", s.log.error);
    for (int v = 0; v < NUM_VOXELS; v++) s.other[v] = 1e7f; /* far more than the counts explain, but decreasing */
    params.initial = &s.other_vector;
    assert_ok(reconstruct(&params, s.image));
}

/* --- bad input --- */

static void expect(const lr_recon_params *params, const char *words)
{
    assert_fails(reconstruct(params, s.image), LR_USAGE, &s.log, words);
}

static void test_bad_input(void **state)
{
    lr_recon_params params = ramla(1, 2);
    spoilt(params.relaxation = -0.5, expect(&params, "a relaxation of -0.5 that falls by 0"));
    spoilt(params.relaxation = NAN, expect(&params, "must be finite"));
    params.relaxation = 1.0;
    spoilt(params.relaxation_fall = INFINITY, expect(&params, "falls by inf"));
    params.relaxation_fall = 0.0;
    spoilt(params.algorithm = LR_ALGORITHM_OSEM, expect(&params, "belongs to RAMLA"));
    spoilt(params.algorithm = (lr_recon_algorithm)7, expect(&params, "algorithm 7 does not exist"));
    params = ramla(1, 2);
    spoilt(params.iterations_before = -1, expect(&params, "-1 iterations before"));
    params.iterations_before = 0;
    assert_fails(array_osem(&params, s.image), LR_USAGE, &s.log, "lr_recon has the others");
}

#define RING(test) CASE_AFTER(set_up, test)
backend_main("cpu",
             EACH(RING, test_it_is_the_papers_formula, test_one_block_is_the_plain_formula,
                  test_no_voxel_becomes_negative, test_own_steps_go_as_far_everywhere, test_it_goes_on_where_it_was,
                  test_native_gives_the_same),
             CASE(test_the_default_is_bounded), RING(test_what_explodes_ends), RING(test_bad_input))
