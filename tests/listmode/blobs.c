/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images of blobs in list mode, for the backend that argv[1] names: sums of blobs, line integrals in closed form, and
 * the laws of projections. */
#include "listmode/settings.h"
#include "operators.h"

#define PI 3.14159265358979323846

/* MANY: whose order each grid's backend has for itself. */
enum { COUNT = 400, MANY = 6000 };

static const char *backend;
static lr_scanner *scanner;
static lr_lors *lors;
static lr_event events[MANY];

/* Blobs of a tenth of the usual volume, so that few make an image. */
static const lr_blobs small = {.radius_mm = 5};

static lr_grid voxel_grid(void)
{
    lr_grid grid = lr_grid_centred((const int[3]){9, 8, 7}, (const double[3]){4, 4.5, 3.5});
    grid.origin_mm[0] += 1.2;
    grid.origin_mm[2] -= 0.9;
    return grid;
}

/* Lines enter it anywhere, and meet few of its slices. */
static lr_grid wide_grid(void)
{
    return lr_grid_centred((const int[3]){30, 6, 3}, (const double[3]){4.5, 4.5, 3.5});
}

static int setup(void **state)
{
    static const int crystals[2] = {4, 3};
    const lr_ring ring = {.radius_mm = 80,
                          .modules = 12,
                          .block_crystals = {&crystals[0], &crystals[1]},
                          .pitch_mm = {8, 8},
                          .face_mm = {8, 8},
                          .depth_mm = 10};
    uint64_t seed = test_seed();
    scanner = lr_scanner_create_ring(
        &(lr_scanner_params){.name = "dodecagon", .coincidence = {.min_module_difference = 4}}, &ring);
    lors = lr_lors_create(scanner, NULL);
    assert_non_null(lors);
    for (int k = 0; k < MANY; k++) {
        const int m = (int)(12 * test_random(&seed));
        const int n = (m + 4 + (int)(5 * test_random(&seed))) % 12;
        events[k] =
            (lr_event){.crystals = {12 * m + (int)(12 * test_random(&seed)), 12 * n + (int)(12 * test_random(&seed))},
                       .tof_mm = (float)(40 * test_random(&seed) - 20),
                       .weight = 1};
    }
    return 0;
}

static int teardown(void **state)
{
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    return 0;
}

static lr_blobs complete(lr_blobs blobs)
{
    assert_int_equal(lr_blobs_complete(&blobs, NULL), LR_OK);
    return blobs;
}

/* --- blobs by themselves --- */

static void test_a_footprint_is_a_line_integral(void **state)
{
    const lr_blobs blobs = complete((lr_blobs){.radius_mm = 7, .alpha = 6, .spacing_mm = 5});
    enum { STEPS = 20000 };
    for (int k = 0; k < 9; k++) {
        const double off = 0.85 * k, half = sqrt(49 - off * off), step = 2 * half / STEPS;
        double sum = 0;
        for (int n = 0; n < STEPS; n++) {
            const double t = (n + 0.5) * step - half;
            sum += lr_blobs_value(&blobs, sqrt(off * off + t * t)) * step;
        }
        assert_close(lr_blobs_footprint(&blobs, off), sum, 1e-6);
    }
    assert_true(lr_blobs_footprint(&blobs, 7) == 0 && lr_blobs_value(&blobs, 7.5) == 0);
}

/* The spectrum of a blob at k / mm, over that at 0. */
static double spectrum(const lr_blobs *blobs, double k)
{
    enum { STEPS = 4000 };
    const double step = blobs->radius_mm / STEPS;
    double wave = 0, volume = 0;
    for (int n = 0; n < STEPS; n++) {
        const double r = (n + 0.5) * step, value = lr_blobs_value(blobs, r) * r;
        wave += value * sin(k * r) / k;
        volume += value * r;
    }
    return wave / volume;
}

/* Waves along an axis that are added up; those beyond are below 1e-5 in all. */
enum { WAVES = 12 };

/* A lattice of blobs is 1 and the waves of its reciprocal lattice, whose whole numbers add up to even
 * ones (Poisson's sum). */
static double rippled(const lr_blobs *blobs, const double off[3], const double *waves)
{
    const double unit = 2 * PI / blobs->spacing_mm;
    double sum = 1;
    for (int h = -WAVES; h <= WAVES; h++) {
        for (int k = -WAVES; k <= WAVES; k++) {
            for (int l = -WAVES; l <= WAVES; l++) {
                const int square = h * h + k * k + l * l;
                if (square > 0 && square <= WAVES * WAVES && (h + k + l) % 2 == 0)
                    sum += waves[square] * cos(unit * (h * off[0] + k * off[1] + l * off[2]));
            }
        }
    }
    return sum;
}

static double check_constant(lr_blobs asked)
{
    const lr_blobs blobs = complete(asked);
    lr_image *image =
        lr_image_create(&(lr_grid){.size = {5, 4, 3}, .voxel_mm = {4, 4, 4}, .origin_mm = {-15.2, -13, 3.1}}, NULL);
    lr_grid grids[2];
    double waves[WAVES * WAVES + 1] = {0}, ripple = 0;
    lr_blobs_grids(&blobs, &image->grid, grids);
    const int64_t count = 2 * lr_grid_num_voxels(&grids[0]);
    float *ones = malloc((size_t)count * sizeof(*ones));
    for (int64_t k = 0; k < count; k++) ones[k] = 1;
    for (int square = 1; square <= WAVES * WAVES; square++)
        waves[square] = spectrum(&blobs, 2 * PI * sqrt(square) / blobs.spacing_mm);
    assert_int_equal(lr_blobs_evaluate(&blobs, ones, image, NULL), LR_OK);
    for (int64_t v = 0; v < lr_grid_num_voxels(&image->grid); v++) {
        double point[3];
        lr_grid_voxel_centre(&image->grid, v, point);
        for (int k = 0; k < 3; k++) point[k] -= grids[0].origin_mm[k];
        assert_true(fabs((double)image->values[v] - rippled(&blobs, point, waves)) < 3e-5);
        ripple = fmax(ripple, fabs((double)image->values[v] - 1));
    }
    print_message("radius %g, spacing %g mm: ripple %.2g\n", blobs.radius_mm, blobs.spacing_mm, ripple);
    free(ones);
    lr_image_destroy(image);
    return ripple;
}

static void test_a_constant_image_has_the_known_ripple(void **state)
{
    const lr_blobs usual = complete((lr_blobs){0});
    assert_true(usual.radius_mm == 10 && usual.alpha == 8.37);
    assert_close(usual.spacing_mm, 8.149, 1e-3);
    assert_true(check_constant((lr_blobs){0}) < 2e-3);
    assert_true(check_constant((lr_blobs){.spacing_mm = 11}) > 0.02);
}

/* --- projections --- */

static lr_listmode_params params_of(const lr_grid *grid, const lr_events_info *info)
{
    return (lr_listmode_params){.lors = lors,
                                .grid = grid,
                                .events = events,
                                .count = COUNT,
                                .num_ranges = 3,
                                .blobs = &small,
                                .info = info,
                                .backend = backend,
                                .threads = 2,
                                .log = &test_log.log};
}

/* Distance of a blob's centre from an event's line. */
static double distance(const lr_event *event, const double point[3])
{
    double a[3], b[3], along = 0, square = 0, length = 0;
    lr_scanner_hit_centre(scanner, event->crystals[0], a);
    lr_scanner_hit_centre(scanner, event->crystals[1], b);
    for (int k = 0; k < 3; k++) {
        length += (b[k] - a[k]) * (b[k] - a[k]);
        along += (b[k] - a[k]) * (point[k] - a[k]);
        square += (point[k] - a[k]) * (point[k] - a[k]);
    }
    return sqrt(fmax(square - along * along / length, 0));
}

/* Checks the line integrals of the first events. */
static void check_integrals(const lr_blobs *of, int num_events)
{
    const lr_grid grid = num_events == MANY ? wide_grid() : voxel_grid();
    lr_listmode_params params = params_of(&grid, NULL);
    params.blobs = of;
    params.count = num_events;
    params.num_ranges = num_events == MANY ? 1 : params.num_ranges;
    lr_operator *op = open_operator(&params);
    const lr_blobs blobs = lr_listmode_get_info(op)->blobs;
    const int64_t count = lr_operator_get_info(op)->num_voxels;
    lr_grid grids[2];
    lr_blobs_grids(&blobs, &grid, grids);
    const int64_t each = lr_grid_num_voxels(&grids[0]);
    assert_int_equal(count, 2 * each);
    uint64_t seed = 4;
    double *image = case_random(count, &seed), *values = case_doubles(num_events);
    double rms = 0, worst = 0;
    forward(op, NULL, image, values);
    for (int k = 0; k < num_events; k++) {
        double expected = 0;
        for (int64_t n = 0; n < count; n++) {
            double point[3];
            lr_grid_voxel_centre(&grids[n / each], n % each, point);
            const double off = distance(&events[k], point);
            expected += off < blobs.radius_mm ? image[n] * lr_blobs_footprint(&blobs, off) : 0;
        }
        rms += expected * expected / num_events;
        worst = fmax(worst, fabs(values[k] - expected));
    }
    assert_true(rms > 0);
    assert_true(worst < 1e-5 * sqrt(rms));
    lr_operator_destroy(op);
    free(values);
    free(image);
}

/* Blobs that are close together overlap in windows that kernels do not hold at once. */
static void test_values_are_integrals_of_blobs(void **state)
{
    check_integrals(&small, COUNT);
    setenv("LR_TEST_LISTMODE_BLOCKS", "1024", 1); /* each in few of the slices */
    check_integrals(&small, MANY);
    unsetenv("LR_TEST_LISTMODE_BLOCKS");
    check_integrals(&(lr_blobs){.radius_mm = 5, .spacing_mm = 2.3}, COUNT);
}

/* Numbers of a vector at the backend's place, or of one on the host. */
static void read_numbers(const lr_vector *vector, float *numbers)
{
    lr_vector to = lr_vector_of_floats(numbers, vector->count);
    assert_int_equal(lr_vector_copy(vector, &to), LR_OK);
}

/* Both grids' halves are parts of a vector, wherever it is: nothing passes through the host. */
static void test_vectors_stay_where_they_are(void **state)
{
    const lr_grid grid = voxel_grid();
    const lr_listmode_params params = params_of(&grid, NULL);
    lr_operator *op = open_operator(&params);
    const int64_t num = lr_operator_get_info(op)->num_voxels;
    uint64_t seed = 14;
    double *x = case_random(num, &seed), *ax = case_doubles(COUNT), *aty = case_doubles(num);
    float *numbers = calloc((size_t)num, sizeof(*numbers));
    lr_vector image, values;
    const lr_vector_params like = {.place = lr_operator_place(op), .count = num};
    const lr_vector_params of_events = {.place = like.place, .count = COUNT};
    const lr_vector from = lr_vector_of_doubles(x, num);
    assert_true((like.place != NULL) == (strcmp(backend, "cuda") == 0 || strcmp(backend, "compute") == 0));
    assert_int_equal(lr_vector_create(&like, &image), LR_OK);
    assert_int_equal(lr_vector_create(&of_events, &values), LR_OK);
    assert_int_equal(lr_vector_copy(&from, &image), LR_OK);
    assert_int_equal(lr_operator_forward(op, NULL, &image, &values), LR_OK);
    forward(op, NULL, x, ax);
    read_numbers(&values, numbers);
    for (int k = 0; k < COUNT; k++) assert_close((double)numbers[k], ax[k], 1e-7);
    assert_int_equal(lr_operator_back(op, NULL, &values, &image), LR_OK);
    back(op, ax, aty);
    read_numbers(&image, numbers);
    for (int64_t n = 0; n < num; n++) assert_true(fabs((double)numbers[n] - aty[n]) <= 1e-6 * (1 + fabs(aty[n])));
    lr_vector_destroy(&image);
    lr_vector_destroy(&values);
    lr_operator_destroy(op);
    free(x);
    free(ax);
    free(aty);
    free(numbers);
}

struct rows_seen {
    const double *image;
    double *sums;
    int64_t next;
};

static lr_status see_row(void *user, const lr_row *row)
{
    struct rows_seen *seen = user;
    assert_int_equal(row->row, seen->next++);
    for (int64_t k = 0; k < row->count; k++) seen->sums[row->lor[k]] += seen->image[row->row] * row->probability[k];
    return LR_OK;
}

static void check_laws(const lr_events_info *info)
{
    const lr_grid grid = voxel_grid();
    const lr_listmode_params params = params_of(&grid, info);
    lr_operator *op = open_operator(&params);
    const int64_t count = lr_operator_get_info(op)->num_voxels;
    uint64_t seed = 9;
    double *x = case_random(count, &seed), *y = case_random(COUNT, &seed);
    double *ax = case_doubles(COUNT), *aty = case_doubles(count), left = 0, right = 0;
    forward(op, NULL, x, ax);
    const lr_vector from = lr_vector_of_doubles(y, COUNT);
    lr_vector to = lr_vector_of_doubles(aty, count);
    assert_int_equal(lr_operator_back(op, NULL, &from, &to), LR_OK);
    for (int k = 0; k < COUNT; k++) left += ax[k] * y[k];
    for (int64_t n = 0; n < count; n++) right += x[n] * aty[n];
    assert_true(left > 0);
    assert_close(left, right, 1e-6);
    struct rows_seen seen = {.image = x, .sums = case_doubles(COUNT)};
    assert_int_equal(lr_operator_rows(op, 0, count, &(lr_row_sink){see_row, &seen}), LR_OK);
    assert_int_equal(seen.next, count);
    for (int k = 0; k < COUNT; k++) assert_true(fabs(seen.sums[k] - ax[k]) <= 1e-6 * (1 + ax[k]));
    lr_operator_destroy(op);
    free(x);
    free(y);
    free(ax);
    free(aty);
    free(seen.sums);
}

static void test_back_is_the_transpose(void **state)
{
    const lr_events_info info = {.has_tof = true, .tof_resolution_ps = 200};
    check_laws(NULL);
    check_laws(&info);
}

/* Events of the same LORs fill all bins of time of flight, each a tenth of a standard deviation wide. If events know
 * of the bins, the sum is exact, else it approximates the integral. The Gaussian is cut where its height is 0.0044 /
 * sigma, so a bin more or less changes the sum by 0.05 % of a blob. */
static void test_bins_add_up_to_the_integral(void **state)
{
    enum { BINS = 241, LINES = 6 };
    const lr_grid grid = voxel_grid();
    lr_events_info info = {.has_tof = true, .tof_resolution_ps = 150};
    const double bin_mm = 150 * 0.149896229 / 2.3548200450309493 / 10;
    uint64_t seed = 21;
    double *image = NULL, plain[COUNT];
    static lr_event binned[LINES * BINS];
    static double values[LINES * BINS];
    for (int k = 0; k < LINES * BINS; k++) {
        binned[k] = events[k / BINS];
        binned[k].tof_mm = (float)(bin_mm * (k % BINS - BINS / 2));
    }
    lr_listmode_params params = params_of(&grid, NULL);
    lr_operator *op = open_operator(&params);
    image = case_random(lr_operator_get_info(op)->num_voxels, &seed);
    forward(op, NULL, image, plain);
    lr_operator_destroy(op);
    int seen = 0;
    for (int pass = 0; pass < 2; pass++) {
        double sums[LINES] = {0};
        info.tof_bin_mm = pass * bin_mm;
        params = params_of(&grid, &info);
        params.events = binned;
        params.count = LINES * BINS;
        op = open_operator(&params);
        forward(op, NULL, image, values);
        lr_operator_destroy(op);
        for (int k = 0; k < LINES * BINS; k++) sums[k / BINS] += bin_mm * values[k];
        for (int k = 0; k < LINES; k++) {
            assert_true(fabs(sums[k] - plain[k]) <= (pass == 0 ? 1e-3 : 1e-5) * plain[k]);
            seen += plain[k] > 0;
        }
    }
    assert_true(seen > 0);
    free(image);
}

/* Sums of whole numbers have the same rounding in all voxels, few lines or many. */
static void expect_alike(const double *found, const double *expected, int64_t count)
{
    const double rms = sqrt(case_dot(expected, expected, count) / (double)count);
    for (int64_t n = 0; n < count; n++) assert_true(fabs(found[n] - expected[n]) <= 1e-5 * expected[n] + 1e-6 * rms);
}

static void test_sensitivity_is_that_of_all_lines(void **state)
{
    const lr_grid grid = voxel_grid();
    lr_event *all = calloc((size_t)lors->count, sizeof(*all));
    int64_t num = 0;
    for (int64_t n = 0; n < lors->count; n++) {
        const lr_lor lor = lr_lors_describe(lors, n);
        if (lr_lors_in_coincidence(lors, n)) {
            all[num++] =
                (lr_event){.crystals = {12 * lor.module_i + 4 * lor.q + lor.p, 12 * lor.module_j + 4 * lor.s + lor.r}};
        }
    }
    lr_listmode_params params = params_of(&grid, NULL);
    params.events = all;
    params.count = num;
    lr_operator *op = open_operator(&params);
    const int64_t count = lr_operator_get_info(op)->num_voxels;
    double *found = case_doubles(count), *expected = case_doubles(count), *ones = case_doubles(num);
    for (int64_t k = 0; k < num; k++) ones[k] = 1;
    const lr_vector from = lr_vector_of_doubles(ones, num);
    lr_vector to = lr_vector_of_doubles(expected, count);
    assert_int_equal(lr_operator_back(op, NULL, &from, &to), LR_OK);
    to = lr_vector_of_doubles(found, count);
    assert_int_equal(lr_operator_sensitivity(op, NULL, &to), LR_OK);
    expect_alike(found, expected, count);
    lr_operator_destroy(op);
    free(all);
    free(found);
    free(expected);
    free(ones);
}

static double *sensitivity_by(const lr_listmode_params *params)
{
    lr_operator *op = open_operator(params);
    const int64_t count = lr_operator_get_info(op)->num_voxels;
    double *found = case_doubles(count);
    lr_vector to = lr_vector_of_doubles(found, count);
    assert_int_equal(lr_operator_sensitivity(op, NULL, &to), LR_OK);
    lr_operator_destroy(op);
    return found;
}

/* Operators can take the sensitivity of an operator with the same blobs, as the frames of a study take that of the
 * first frame. */
static void test_sensitivity_is_taken(void **state)
{
    const lr_grid grid = voxel_grid(), other = wide_grid();
    lr_listmode_params params = params_of(&grid, NULL);
    lr_operator *first = open_operator(&params);
    params.events = events + COUNT;
    double *expected = sensitivity_by(&params);
    params.sensitivity_of = first;
    double *found = sensitivity_by(&params);
    const int64_t count = lr_operator_get_info(first)->num_voxels;
    expect_alike(found, expected, count);
    params.blobs = NULL; /* voxels */
    assert_null(lr_listmode_create(&params));
    assert_non_null(strstr(test_log.error, "another grid"));
    params.blobs = &small;
    params.grid = &other;
    assert_null(lr_listmode_create(&params));
    lr_operator_destroy(first);
    free(found);
    free(expected);
}

static void test_mistakes_are_told(void **state)
{
    const lr_grid grid = voxel_grid();
    const lr_blobs wrong[3] = {{.radius_mm = -1}, {.alpha = 51}, {.spacing_mm = NAN}};
    for (int k = 0; k < 3; k++) {
        lr_listmode_params params = params_of(&grid, NULL);
        params.blobs = &wrong[k];
        test_log_init(&test_log);
        assert_null(lr_listmode_create(&params));
        assert_int_equal(test_log.status, LR_USAGE);
        assert_non_null(strstr(test_log.error, "blobs cannot have a radius of"));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_footprint_is_a_line_integral),
        cmocka_unit_test(test_a_constant_image_has_the_known_ripple),
        cmocka_unit_test(test_values_are_integrals_of_blobs),
        cmocka_unit_test(test_vectors_stay_where_they_are),
        cmocka_unit_test(test_back_is_the_transpose),
        cmocka_unit_test(test_bins_add_up_to_the_integral),
        cmocka_unit_test(test_sensitivity_is_that_of_all_lines),
        cmocka_unit_test(test_sensitivity_is_taken),
        cmocka_unit_test(test_mistakes_are_told),
    };
    backend = argc > 1 ? argv[1] : "cpu";
    if (lacks_device(backend)) return 77;
    return cmocka_run_group_tests(tests, setup, teardown);
}
