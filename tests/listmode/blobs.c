/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images of blobs in list mode, for the backend that argv[1] names: sums of blobs, line integrals in closed form, and
 * the laws of projections. */
#include "listmode/cases.h"
#include "listmode/settings.h"

#define PI 3.14159265358979323846

/* MANY: so many events that the backend of each of the two grids orders them for itself. */
enum { COUNT = 400, MANY = 6000 };

static lr_lors *lors;
static lr_event events[MANY];

/* Blobs with a tenth of the usual volume, so that a small image needs few of them. */
static const lr_blobs small = {.radius_mm = 5};

static lr_grid voxel_grid(void)
{
    return shifted_grid((const int[3]){9, 8, 7}, (const double[3]){4, 4.5, 3.5}, (const double[3]){1.2, 0, -0.9});
}

/* A long, flat grid: lines enter it anywhere and cross only few of its slices. */
static lr_grid wide_grid(void)
{
    return lr_grid_centred((const int[3]){30, 6, 3}, (const double[3]){4.5, 4.5, 3.5});
}

static int set_up(void **state)
{
    uint64_t seed = test_seed();
    lors = lors_from(
        scanner_from("ring: {radius_mm: 80, modules: 12}\nmodule: {crystals: [4, 3], pitch_mm: [8, 8], face_mm: "
                     "[8, 8], depth_mm: 10}\ncoincidence: {min_module_difference: 4}"));
    for (int k = 0; k < MANY; k++) {
        const int m = (int)(12 * test_random(&seed)), n = (m + 4 + (int)(5 * test_random(&seed))) % 12;
        events[k] =
            (lr_event){.crystals = {12 * m + (int)(12 * test_random(&seed)), 12 * n + (int)(12 * test_random(&seed))},
                       .tof_mm = (float)(40 * test_random(&seed) - 20),
                       .weight = 1};
    }
    return 0;
}

static lr_blobs complete(lr_blobs blobs)
{
    assert_ok(lr_blobs_complete(&blobs, NULL));
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

/* Number of waves along an axis that are added up; all further waves together are below 1e-5. */
enum { WAVES = 12 };

/* The sum of a lattice of blobs is 1 plus the waves of its reciprocal lattice, which are those with an even sum of
 * their three indices (Poisson's sum formula). */
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
    lr_image *image = keep(
        lr_image_create(&(lr_grid){.size = {5, 4, 3}, .voxel_mm = {4, 4, 4}, .origin_mm = {-15.2, -13, 3.1}}, NULL));
    lr_grid grids[2];
    double waves[WAVES * WAVES + 1] = {0}, ripple = 0;
    lr_blobs_grids(&blobs, &image->grid, grids);
    const int64_t count = 2 * lr_grid_num_voxels(&grids[0]);
    const float *ones = kept_equal_floats(count, 1);
    for (int square = 1; square <= WAVES * WAVES; square++) {
        /* The wave's share is the spectrum of a blob at spatial frequency k / mm, divided by its value at 0. */
        const double k = 2 * PI * sqrt(square) / blobs.spacing_mm;
        enum { STEPS = 4000 };
        const double step = blobs.radius_mm / STEPS;
        double wave = 0, volume = 0;
        for (int n = 0; n < STEPS; n++) {
            const double r = (n + 0.5) * step, value = lr_blobs_value(&blobs, r) * r;
            wave += value * sin(k * r) / k;
            volume += value * r;
        }
        waves[square] = wave / volume;
    }
    assert_ok(lr_blobs_evaluate(&blobs, ones, image, NULL));
    for (int64_t v = 0; v < lr_grid_num_voxels(&image->grid); v++) {
        double point[3];
        lr_grid_voxel_centre(&image->grid, v, point);
        for (int k = 0; k < 3; k++) point[k] -= grids[0].origin_mm[k];
        assert_true(fabs((double)image->values[v] - rippled(&blobs, point, waves)) < 3e-5);
        ripple = fmax(ripple, fabs((double)image->values[v] - 1));
    }
    print_message("radius %g, spacing %g mm: ripple %.2g\n", blobs.radius_mm, blobs.spacing_mm, ripple);
    return ripple;
}

static void test_a_constant_image_has_the_known_ripple(void **state)
{
    const lr_blobs usual = complete((lr_blobs){0});
    assert_true(usual.radius_mm == 10 && usual.alpha == 8.37);
    assert_close(usual.spacing_mm, 8.149, 1e-3);
    assert_all(check_constant((lr_blobs){0}) < 2e-3, check_constant((lr_blobs){.spacing_mm = 11}) > 0.02);
}

/* --- projections --- */

static lr_listmode_params params_of(const lr_grid *grid, const lr_events_info *info)
{
    lr_listmode_params params = case_params(lors, grid, events, COUNT);
    params.num_ranges = 3;
    params.blobs = &small;
    params.info = info;
    return params;
}

/* Distance from a blob's centre to an event's line. */
static double distance(const lr_event *event, const double point[3])
{
    double a[3], b[3], along = 0, square = 0, length = 0;
    lr_scanner_hit_centre(lors->scanner, event->crystals[0], a);
    lr_scanner_hit_centre(lors->scanner, event->crystals[1], b);
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
    params.no_solid_angles = true;
    params.count = num_events;
    params.num_ranges = num_events == MANY ? 1 : params.num_ranges;
    lr_operator *op = kept_operator(&params);
    const lr_blobs blobs = lr_listmode_get_info(op)->blobs;
    lr_grid grids[2];
    lr_blobs_grids(&blobs, &grid, grids);
    const int64_t each = lr_grid_num_voxels(&grids[0]), count = test_num_voxels(op);
    assert_int_equal(count, 2 * each);
    uint64_t seed = 4;
    double *image = kept_random_singles(count, 0, 1, &seed), *values = kept_doubles(num_events), rms = 0, worst = 0;
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
    assert_all(rms > 0, worst < 1e-5 * sqrt(rms));
}

/* Blobs that are close together overlap, in windows that are larger than a kernel holds at once. */
static void test_values_are_integrals_of_blobs(void **state)
{
    check_integrals(&small, COUNT);
    setenv("LR_TEST_LISTMODE_BLOCKS", "1024", 1); /* few slices per block */
    check_integrals(&small, MANY);
    unsetenv("LR_TEST_LISTMODE_BLOCKS");
    check_integrals(&(lr_blobs){.radius_mm = 5, .spacing_mm = 2.3}, COUNT);
}

/* The error of a number is at most `share` times the number, plus `error`. */
static void expect_numbers(const lr_vector *vector, const double *expected, double share, double error)
{
    double *found = kept_doubles(vector->count);
    lr_vector host = lr_vector_of_doubles(found, vector->count);
    assert_ok(lr_vector_copy(vector, &host));
    for (int64_t k = 0; k < host.count; k++)
        assert_true(fabs(found[k] - expected[k]) <= share * fabs(expected[k]) + error);
}

/* The values of both grids are parts of the same vector, wherever the vector is: nothing is copied to the host. */
static void test_vectors_stay_where_they_are(void **state)
{
    const lr_grid grid = voxel_grid();
    const lr_listmode_params params = params_of(&grid, NULL);
    lr_operator *op = kept_operator(&params);
    const struct both both = both_of(op, NULL);
    double *image_of_values = kept_doubles(both.num_voxels);
    lr_place *place = lr_operator_place(op);
    assert_true((place != NULL) == is_on_device());
    lr_vector image = kept_vector(place, both.num_voxels, LR_FLOAT32), values = kept_vector(place, COUNT, LR_FLOAT32);
    assert_ok(lr_vector_copy(vector_of(both.x, both.num_voxels), &image),
              lr_operator_forward(op, NULL, &image, &values));
    expect_numbers(&values, both.values, 1e-7, 0);
    assert_ok(lr_operator_back(op, NULL, &values, &image));
    back(op, both.values, image_of_values);
    expect_numbers(&image, image_of_values, 1e-6, 1e-6);
}

static void check_laws(const lr_events_info *info)
{
    const lr_grid grid = voxel_grid();
    const lr_listmode_params params = params_of(&grid, info);
    lr_operator *op = kept_operator(&params);
    const struct both both = both_of(op, NULL);
    struct rows_seen seen = {.x = both.x, .sums = kept_doubles(COUNT)};
    expect_adjoint(&both, 1e-6);
    assert_ok(lr_operator_rows(op, 0, both.num_voxels, &(lr_row_sink){see_row, &seen}));
    assert_int_equal(seen.next, both.num_voxels);
    for (int k = 0; k < COUNT; k++) assert_true(fabs(seen.sums[k] - both.values[k]) <= 1e-6 * (1 + both.values[k]));
}

static void test_back_is_the_transpose(void **state)
{
    const lr_events_info info = tof_info(200);
    check_laws(NULL);
    check_laws(&info);
}

/* Events on the same LORs fill all time-of-flight bins, each a tenth of a standard deviation wide. If the bin width
 * is given, the sum over bins is exact; if not, it approximates the integral. The Gaussian is cut where its height
 * is 0.0044 / sigma, so that one bin more or less changes the sum by 0.05 % of a blob. */
static void test_bins_add_up_to_the_integral(void **state)
{
    enum { BINS = 241, LINES = 6 };
    const lr_grid grid = voxel_grid();
    lr_events_info info = tof_info(150);
    const double bin_mm = 150 * 0.149896229 / 2.3548200450309493 / 10;
    uint64_t seed = 21;
    static lr_event binned[LINES * BINS];
    for (int k = 0; k < LINES * BINS; k++) {
        binned[k] = events[k / BINS];
        binned[k].tof_mm = (float)(bin_mm * (k % BINS - BINS / 2));
    }
    lr_listmode_params params = params_of(&grid, NULL);
    const double *image = kept_random_singles(test_num_voxels(kept_operator(&params)), 0, 1, &seed);
    const double *plain = values_by(&params, image);
    int seen = 0;
    params.info = &info;
    params.events = binned;
    params.count = LINES * BINS;
    for (int pass = 0; pass < 2; pass++) {
        double sums[LINES] = {0};
        info.tof_bin_mm = pass * bin_mm;
        const double *values = values_by(&params, image);
        for (int k = 0; k < LINES * BINS; k++) sums[k / BINS] += bin_mm * values[k];
        for (int k = 0; k < LINES; k++) {
            assert_true(fabs(sums[k] - plain[k]) <= (pass == 0 ? 1e-3 : 1e-5) * plain[k]);
            seen += plain[k] > 0;
        }
    }
    assert_true(seen > 0);
}

/* Sums of integers have the same rounding error in all voxels, whether few or many lines see them. */
static void expect_alike(const double *found, const double *expected, int64_t count)
{
    const double rms = sqrt(dot_product(expected, expected, count) / (double)count);
    for (int64_t n = 0; n < count; n++) assert_true(fabs(found[n] - expected[n]) <= 1e-5 * expected[n] + 1e-6 * rms);
}

static void test_sensitivity_is_that_of_all_lines(void **state)
{
    const lr_grid grid = voxel_grid();
    lr_event *all = kept(lors->count, sizeof(*all));
    lr_listmode_params params = params_of(&grid, NULL);
    params.events = all;
    params.count = 0;
    for (int64_t n = 0; n < lors->count; n++) {
        const lr_lor lor = lr_lors_describe(lors, n);
        if (lr_lors_in_coincidence(lors, n)) {
            all[params.count++] =
                (lr_event){.crystals = {12 * lor.module_i + 4 * lor.q + lor.p, 12 * lor.module_j + 4 * lor.s + lor.r}};
        }
    }
    lr_operator *op = kept_operator(&params);
    expect_alike(sensitivity_of(op, NULL), image_by(&params, NULL), test_num_voxels(op));
}

/* Operators can use the sensitivity of another operator with the same blobs, as the frames of a study use that of
 * the first frame. */
static void test_sensitivity_is_taken(void **state)
{
    const lr_grid grid = voxel_grid(), other = wide_grid();
    lr_listmode_params params = params_of(&grid, NULL);
    lr_operator *first = kept_operator(&params);
    params.events = events + COUNT;
    const double *expected = sensitivity_by(&params, NULL);
    params.sensitivity_of = first;
    expect_alike(sensitivity_by(&params, NULL), expected, test_num_voxels(first));
    params.blobs = NULL; /* voxels instead of blobs */
    assert_null(lr_listmode_create(&params));
    assert_says(test_log.error, "another grid");
    params.blobs = &small;
    params.grid = &other;
    assert_null(lr_listmode_create(&params));
}

static void test_mistakes_are_told(void **state)
{
    const lr_grid grid = voxel_grid();
    const lr_blobs wrong[3] = {{.radius_mm = -1}, {.alpha = 51}, {.spacing_mm = NAN}};
    for (int k = 0; k < 3; k++) {
        lr_listmode_params params = params_of(&grid, NULL);
        params.blobs = &wrong[k];
        assert_none(lr_listmode_create(&params), LR_USAGE, &test_log, "blobs cannot have a radius of");
    }
}

case_main("cpu", set_up,
          CASES(test_a_footprint_is_a_line_integral, test_a_constant_image_has_the_known_ripple,
                test_values_are_integrals_of_blobs, test_vectors_stay_where_they_are, test_back_is_the_transpose,
                test_bins_add_up_to_the_integral, test_sensitivity_is_that_of_all_lines, test_sensitivity_is_taken,
                test_mistakes_are_told))
