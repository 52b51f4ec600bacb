/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Resolution in image space, for operators of every family, against a three-dimensional sum in double. Argument: the
 * backend. */
#include "fixtures.h"

#include <lr/direct.h>
#include <lr/listmode.h>

static const double fwhm_mm[3] = {6.0, 0.0, 4.0};

struct bench {
    struct fixture fixture;
    struct test_log log;
    lr_operator *op, *plain;
    int64_t num_voxels, num_values;
    float *image, *blurred, *out, *data, *other;
};

static float *make_floats(int64_t count)
{
    float *values = kept_floats(count);
    return values;
}

static void bench_fill(struct bench *bench)
{
    uint64_t random = 7;
    const lr_operator_info *info = lr_operator_get_info(bench->op);
    bench->num_voxels = info->num_voxels;
    bench->num_values = info->num_lors;
    bench->image = make_floats(bench->num_voxels);
    bench->blurred = make_floats(bench->num_voxels);
    bench->out = make_floats(bench->num_voxels);
    bench->data = make_floats(bench->num_values);
    bench->other = make_floats(bench->num_values);
    for (int64_t v = 0; v < bench->num_voxels; v++) bench->image[v] = (float)test_random(&random);
    for (int64_t l = 0; l < bench->num_values; l++) bench->other[l] = (float)test_random(&random);
    assert_ok(lr_operator_set_psf(bench->op, fwhm_mm));
}

static void open_correspondence(struct bench *bench, const char *backend)
{
    *bench = (struct bench){0};
    test_log_init(&bench->log);
    fixture_init(&bench->fixture, FIXTURE_RING);
    const lr_operator_params params = fixture_params(&bench->fixture, backend, &bench->log.log);
    bench->op = keep(lr_operator_create(&params));
    bench->plain = keep(lr_operator_create(&params));
    bench_fill(bench);
}

static int32_t crystal_of(const lr_scanner *scanner, int module, const int at[2])
{
    return scanner->first_crystal[module] + at[1] * scanner->modules[module].crystals[0] + at[0];
}

static void open_listmode(struct bench *bench)
{
    enum { EVENTS = 200 };
    static lr_event events[EVENTS];
    *bench = (struct bench){0};
    test_log_init(&bench->log);
    fixture_init(&bench->fixture, FIXTURE_RING);
    const lr_lors *lors = bench->fixture.lors;
    for (int k = 0; k < EVENTS; k++) {
        events[k] = (lr_event){.weight = 1.0f};
        const lr_lor lor = lr_lors_describe(lors, lors->count / EVENTS * k);
        events[k].crystals[0] = crystal_of(lors->scanner, lor.module_i, (const int[2]){lor.p, lor.q});
        events[k].crystals[1] = crystal_of(lors->scanner, lor.module_j, (const int[2]){lor.r, lor.s});
    }
    const lr_listmode_params params = {
        .lors = lors, .grid = &bench->fixture.grid, .events = events, .count = EVENTS, .log = &bench->log.log};
    bench->op = lr_listmode_create(&params);
    bench->plain = lr_listmode_create(&params);
    assert_true(bench->op != NULL && bench->plain != NULL);
    bench_fill(bench);
}

static void open_direct(struct bench *bench)
{
    static const lr_view views[2] = {{0, 0}, {45, 5}};
    *bench = (struct bench){0};
    test_log_init(&bench->log);
    fixture_init(&bench->fixture, FIXTURE_RING);
    bench->fixture.grid = lr_grid_centred((const int[3]){20, 18, 9}, (const double[3]){4, 4, 4});
    const lr_direct_params params = {.grid = &bench->fixture.grid,
                                     .views = views,
                                     .num_views = 2,
                                     .kernel = {.resolution = {.tof_ps = 100, .radial_mm = 6, .axial_mm = 5}},
                                     .backend = "cpu",
                                     .log = &bench->log.log};
    bench->op = lr_direct_create(&params);
    bench->plain = lr_direct_create(&params);
    assert_true(bench->op != NULL && bench->plain != NULL);
    bench_fill(bench);
}

static void bench_close(struct bench *bench)
{
    lr_operator_destroy(bench->op);
    lr_operator_destroy(bench->plain);
    fixture_finish(&bench->fixture);
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

static void blur(const struct bench *bench, const float *from, float *to)
{
    const lr_grid *grid = &bench->fixture.grid;
    const int nx = grid->size[0], ny = grid->size[1];
    double shares[3][MOST_APART];
    for (int axis = 0; axis < 3; axis++) {
        assert_true(grid->size[axis] <= MOST_APART);
        for (int k = 0; k < MOST_APART; k++)
            shares[axis][k] = share(k * grid->voxel_mm[axis], grid->voxel_mm[axis], fwhm_mm[axis]);
    }
    for (int v = 0; v < (int)bench->num_voxels; v++) {
        double sum = 0.0;
        for (int w = 0; w < (int)bench->num_voxels; w++) {
            sum += shares[0][abs(v % nx - w % nx)] * shares[1][abs(v / nx % ny - w / nx % ny)] *
                   shares[2][abs(v / nx / ny - w / nx / ny)] * (double)from[w];
        }
        to[v] = (float)sum;
    }
}

static double largest_of(const float *values, int64_t count)
{
    double largest = 0.0;
    for (int64_t k = 0; k < count; k++) largest = fmax(largest, fabs((double)values[k]));
    return largest;
}

/* The tests' sum is not cut where the library's is, beyond which 6e-5 of each axis lie. */
static void check_near(const float *found, const float *expected, int64_t count)
{
    const double allowed = 3e-4 * largest_of(expected, count);
    assert_true(allowed > 0.0);
    for (int64_t k = 0; k < count; k++) assert_true(fabs((double)found[k] - (double)expected[k]) <= allowed);
}

/* --- laws --- */

static double dot(const float *a, const float *b, int64_t count)
{
    double sum = 0.0;
    for (int64_t k = 0; k < count; k++) sum += (double)a[k] * (double)b[k];
    return sum;
}

static void check_laws(struct bench *bench)
{
    float *sensitivity = make_floats(bench->num_voxels), *data = make_floats(bench->num_values);
    /* Forward: the plain operator of the blurred image. */
    blur(bench, bench->image, bench->blurred);
    assert_ok(array_forward(bench->op, bench->image, bench->data));
    assert_ok(array_forward(bench->plain, bench->blurred, data));
    check_near(bench->data, data, bench->num_values);
    /* Back: the transpose. */
    assert_ok(array_back(bench->op, bench->other, bench->out));
    const double one = dot(bench->data, bench->other, bench->num_values);
    assert_close(one, dot(bench->image, bench->out, bench->num_voxels), 1e-6);
    assert_true(one > 0.0);
    /* Sensitivity: blurred, as often as it is asked for. */
    assert_ok(array_sensitivity(bench->plain, sensitivity));
    blur(bench, sensitivity, bench->blurred);
    for (int k = 0; k < 2; k++) {
        assert_ok(array_sensitivity(bench->op, bench->out));
        check_near(bench->out, bench->blurred, bench->num_voxels);
    }
}

static void test_correspondence(void **state)
{
    struct bench bench;
    open_correspondence(&bench, *state);
    check_laws(&bench);
    const int32_t pair = 1;
    const lr_selection part = {.pairs = &pair, .num_pairs = 1};
    const int64_t count = test_num_values(bench.op, &part);
    assert_ok(array_forward_part(bench.op, &part, bench.image, bench.data));
    assert_ok(array_back_part(bench.op, &part, bench.other, bench.out));
    assert_close(dot(bench.data, bench.other, count), dot(bench.image, bench.out, bench.num_voxels), 1e-6);
    bench_close(&bench);
}

static void test_listmode(void **state)
{
    struct bench bench;
    open_listmode(&bench);
    check_laws(&bench);
    bench_close(&bench);
}

static void test_direct(void **state)
{
    struct bench bench;
    open_direct(&bench);
    check_laws(&bench);
    bench_close(&bench);
}

static void test_none_changes_nothing(void **state)
{
    struct bench bench;
    static const double none[3] = {0};
    open_correspondence(&bench, *state);
    assert_ok(lr_operator_set_psf(bench.op, none));
    assert_ok(array_forward(bench.op, bench.image, bench.data));
    assert_ok(array_forward(bench.plain, bench.image, bench.other));
    for (int64_t l = 0; l < bench.num_values; l++)
        assert_true(fabs((double)bench.data[l] - (double)bench.other[l]) <= 1e-6);
    bench_close(&bench);
}

/* Away from the faces of the grid. */
static void test_a_constant_stays(void **state)
{
    struct bench bench;
    static float ones[40 * 40 * 40];
    open_direct(&bench);
    lr_grid grid = lr_grid_centred((const int[3]){40, 40, 40}, (const double[3]){2, 2, 2});
    static const lr_view view = {30, 0};
    lr_operator *op =
        lr_direct_create(&(lr_direct_params){.grid = &grid,
                                             .views = &view,
                                             .num_views = 1,
                                             .kernel = {.resolution = {.tof_ps = 20, .radial_mm = 2, .axial_mm = 2}},
                                             .backend = "cpu",
                                             .log = &bench.log.log});
    assert_non_null(op);
    float *found[2] = {make_floats(40 * 40 * 40), make_floats(40 * 40 * 40)};
    for (int k = 0; k < 40 * 40 * 40; k++) ones[k] = 1.0f;
    assert_ok(array_forward(op, ones, found[0]));
    assert_ok(lr_operator_set_psf(op, (const double[3]){4, 5, 6}));
    assert_ok(array_forward(op, ones, found[1]));
    const int middle = 20 + 40 * (20 + 40 * 20);
    assert_close(found[0][middle], found[1][middle], 1e-6);
    assert_true(found[1][0] < 0.9f * found[0][0]); /* what leaves the grid is lost */
    lr_operator_destroy(op);
    bench_close(&bench);
}

static lr_status take(void *user, const lr_row *row)
{
    return LR_OK;
}

static void test_what_is_refused(void **state)
{
    struct bench bench;
    open_correspondence(&bench, *state);
    const lr_row_sink sink = {take, NULL};
    assert_int_equal(lr_operator_rows(bench.op, 0, 1, &sink), LR_USAGE);
    assert_says(bench.log.error, "matrix elements cannot be had");
    assert_int_equal(lr_operator_lor_rows(bench.op, NULL, &sink), LR_USAGE);
    assert_int_equal(lr_operator_set_psf(bench.op, (const double[3]){1, -2, 1}), LR_USAGE);
    assert_says(bench.log.error, "a resolution of -2 mm along y");
    assert_int_equal(lr_operator_set_psf(bench.op, (const double[3]){1, 1, 1e4}), LR_USAGE);
    assert_says(bench.log.error, "is it in mm?");
    bench_close(&bench);
}

int main(int argc, char **argv)
{
    if (!test_backend_is_usable(argc, argv, "cpu")) return 77;
    const struct CMUnitTest tests[] = {CASE(test_correspondence),  CASE(test_none_changes_nothing),
                                       CASE(test_what_is_refused), CASE(test_listmode),
                                       CASE(test_direct),          CASE(test_a_constant_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
