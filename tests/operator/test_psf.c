/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Resolution in image space, for operators of every family, against a three-dimensional sum in double. Argument: the
 * backend. */
#include "fixtures.h"

#include <lr/direct.h>
#include <lr/listmode.h>

static const double fwhm_mm[3] = {6.0, 0.0, 4.0};

static struct bench {
    lr_grid grid;
    struct test_log *log;
    lr_operator *op, *plain;
    int64_t num_voxels, num_values;
    float *image, *blurred, *out, *data, *other;
} bench;

/* Fills the bench with two operators, the first of which has a resolution. */
static void bench_fill(const lr_grid *grid, lr_operator *op, lr_operator *plain)
{
    uint64_t random = 7;
    const lr_operator_info *info = lr_operator_get_info(keep(op));
    const int64_t num_voxels = info->num_voxels, num_values = info->num_lors;
    bench = filled(struct bench, .grid = *grid, .log = bench.log, .op = op, .plain = keep(plain),
                   .num_voxels = num_voxels, .num_values = num_values, .blurred = kept_floats(num_voxels),
                   .out = kept_floats(num_voxels), .data = kept_floats(num_values));
    bench.image = kept_random_floats(num_voxels, 0.0, 1.0, &random);
    bench.other = kept_random_floats(num_values, 0.0, 1.0, &random);
    assert_ok(lr_operator_set_psf(bench.op, fwhm_mm));
}

static void open_correspondence(void)
{
    const struct fixture fixture = kept_fixture(FIXTURE_RING);
    bench.log = kept_log();
    const lr_operator_params params = fixture_params(&fixture, test_backend, &bench.log->log);
    bench_fill(&fixture.grid, lr_operator_create(&params), lr_operator_create(&params));
}

/* --- the Gaussian --- */

/* Integral of the Gaussian over a voxel at a distance of away_mm, by many points. Without a blur (fwhm 0) it is 1
 * for distance 0, else 0. */
static double share(double away_mm, double edge_mm, double fwhm)
{
    enum { POINTS = 200 };
    double sum = 0.0;
    if (!(fwhm > 0.0)) return away_mm == 0.0 ? 1.0 : 0.0;
    for (int k = 0; k < POINTS; k++) {
        const double at = away_mm + edge_mm * ((k + 0.5) / POINTS - 0.5);
        sum += exp(-4.0 * log(2.0) * at * at / (fwhm * fwhm));
    }
    return sum * edge_mm / POINTS * 2.0 * sqrt(log(2.0) / acos(-1.0)) / fwhm;
}

enum { MOST_APART = 64 };

static void blur(const float *from, float *to)
{
    const lr_grid *grid = &bench.grid;
    const int nx = grid->size[0], ny = grid->size[1];
    double shares[3][MOST_APART];
    for (int axis = 0; axis < 3; axis++) {
        assert_true(grid->size[axis] <= MOST_APART);
        for (int k = 0; k < MOST_APART; k++)
            shares[axis][k] = share(k * grid->voxel_mm[axis], grid->voxel_mm[axis], fwhm_mm[axis]);
    }
    for (int v = 0; v < (int)bench.num_voxels; v++) {
        double sum = 0.0;
        for (int w = 0; w < (int)bench.num_voxels; w++) {
            sum += shares[0][abs(v % nx - w % nx)] * shares[1][abs(v / nx % ny - w / nx % ny)] *
                   shares[2][abs(v / nx / ny - w / nx / ny)] * (double)from[w];
        }
        to[v] = (float)sum;
    }
}

/* The sum of the tests extends further than the library's, which leaves out 6e-5 of the Gaussian along each axis. */
static const double same_blur = 3e-4;

/* --- laws --- */

static void check_laws(void)
{
    float *sensitivity = kept_floats(bench.num_voxels), *data = kept_floats(bench.num_values);
    /* Forward: the plain operator applied to the blurred image. */
    blur(bench.image, bench.blurred);
    assert_ok(array_forward(bench.op, bench.image, bench.data), array_forward(bench.plain, bench.blurred, data));
    assert_all_near("blurred forward", bench.data, data, bench.num_values, same_blur);
    /* Back: the transpose of forward. */
    assert_ok(array_back(bench.op, bench.other, bench.out));
    const double one = dot_product(bench.data, bench.other, bench.num_values);
    assert_close(one, dot_product(bench.image, bench.out, bench.num_voxels), 1e-6);
    assert_true(one > 0.0);
    /* Sensitivity: blurred in the same way in every call. */
    assert_ok(array_sensitivity(bench.plain, sensitivity));
    blur(sensitivity, bench.blurred);
    for (int k = 0; k < 2; k++) {
        assert_ok(array_sensitivity(bench.op, bench.out));
        assert_all_near("blurred sensitivity", bench.out, bench.blurred, bench.num_voxels, same_blur);
    }
}

static void test_correspondence(void **state)
{
    open_correspondence();
    check_laws();
    const int32_t pair = 1;
    const lr_selection part = {.pairs = &pair, .num_pairs = 1};
    const int64_t count = test_num_values(bench.op, &part);
    assert_ok(array_forward_part(bench.op, &part, bench.image, bench.data));
    assert_ok(array_back_part(bench.op, &part, bench.other, bench.out));
    assert_close(dot_product(bench.data, bench.other, count), dot_product(bench.image, bench.out, bench.num_voxels),
                 1e-6);
}

static void test_listmode(void **state)
{
    enum { EVENTS = 200 };
    static lr_event events[EVENTS];
    const struct fixture fixture = kept_fixture(FIXTURE_RING);
    for (int k = 0; k < EVENTS; k++) {
        events[k] = (lr_event){.weight = 1.0f};
        lr_lors_crystals(fixture.lors, fixture.lors->count / EVENTS * k, events[k].crystals);
    }
    const lr_listmode_params params = {.lors = fixture.lors, .grid = &fixture.grid, .events = events, .count = EVENTS};
    bench_fill(&fixture.grid, lr_listmode_create(&params), lr_listmode_create(&params));
    check_laws();
}

static void test_direct(void **state)
{
    static const lr_view views[2] = {{0, 0}, {45, 5}};
    const lr_grid grid = lr_grid_centred((const int[3]){20, 18, 9}, (const double[3]){4, 4, 4});
    const lr_direct_params params =
        filled(lr_direct_params, .grid = &grid, .views = views, .num_views = 2,
               .kernel = {.resolution = {.tof_ps = 100, .radial_mm = 6, .axial_mm = 5}}, .backend = "cpu");
    bench_fill(&grid, lr_direct_create(&params), lr_direct_create(&params));
    check_laws();
}

static void test_none_changes_nothing(void **state)
{
    open_correspondence();
    assert_ok(lr_operator_set_psf(bench.op, (const double[3]){0, 0, 0}));
    assert_ok(array_forward(bench.op, bench.image, bench.data));
    assert_ok(array_forward(bench.plain, bench.image, bench.other));
    for (int64_t l = 0; l < bench.num_values; l++)
        assert_true(fabs((double)bench.data[l] - (double)bench.other[l]) <= 1e-6);
}

/* A constant stays the same away from the faces of the grid. */
static void test_a_constant_stays(void **state)
{
    enum { COUNT = 40 * 40 * 40 };
    const lr_grid grid = lr_grid_centred((const int[3]){40, 40, 40}, (const double[3]){2, 2, 2});
    static const lr_view view = {30, 0};
    lr_operator *op = keep(lr_direct_create(
        &filled(lr_direct_params, .grid = &grid, .views = &view, .num_views = 1,
                .kernel = {.resolution = {.tof_ps = 20, .radial_mm = 2, .axial_mm = 2}}, .backend = "cpu")));
    float *found[2] = {kept_floats(COUNT), kept_floats(COUNT)};
    const float *ones = kept_equal_floats(COUNT, 1.0f);
    assert_ok(array_forward(op, ones, found[0]), lr_operator_set_psf(op, (const double[3]){4, 5, 6}));
    assert_ok(array_forward(op, ones, found[1]));
    const int middle = 20 + 40 * (20 + 40 * 20);
    assert_close(found[0][middle], found[1][middle], 1e-6);
    assert_true(found[1][0] < 0.9f * found[0][0]); /* what leaves the grid is lost */
}

static void test_what_is_refused(void **state)
{
    const lr_row_sink sink = {dense_rows_take, &(struct dense_rows){0}};
    open_correspondence();
    assert_fails(lr_operator_rows(bench.op, 0, 1, &sink), LR_USAGE, bench.log, "matrix elements cannot be had");
    assert_int_equal(lr_operator_lor_rows(bench.op, NULL, &sink), LR_USAGE);
    assert_fails(lr_operator_set_psf(bench.op, (const double[3]){1, -2, 1}), LR_USAGE, bench.log,
                 "a resolution of -2 mm along y");
    assert_fails(lr_operator_set_psf(bench.op, (const double[3]){1, 1, 1e4}), LR_USAGE, bench.log, "is it in mm?");
}

static void test_other_units_are_suspected(void **state)
{
    open_correspondence();
    const lr_scanner *scanner = lr_operator_get_info(bench.op)->lors->scanner;
    const double pitch_mm = scanner->modules[0].pitch_mm[0], edge_mm = bench.grid.voxel_mm[0];
    const int before = bench.log->num_warnings;
    assert_ok(lr_operator_set_psf(bench.op, (const double[3]){2.9 * pitch_mm, 0, 0}));
    assert_ok(lr_operator_set_psf(bench.op, (const double[3]){0, 0.5 * edge_mm, 0}));
    assert_int_equal(bench.log->num_warnings, before);
    assert_ok(lr_operator_set_psf(bench.op, (const double[3]){3.1 * pitch_mm, 0, 0}));
    assert_says(bench.log->warning, "much wider than the crystals");
    assert_ok(lr_operator_set_psf(bench.op, (const double[3]){0, 0.05 * edge_mm, 0}));
    assert_says(bench.log->warning, "changes nothing");
}

backend_main("cpu", CASES(test_correspondence, test_none_changes_nothing, test_what_is_refused,
                          test_other_units_are_suspected, test_listmode, test_direct, test_a_constant_stays))
