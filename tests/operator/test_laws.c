/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The laws of operators for one backend, on every small scanner, in sampled and exact mode, with and without a stored
 * matrix. Argument: the backend. */
#include "fixtures.h"

#include "made_up_backends.h"
#include "operator/facade.h"

struct laws {
    const char *backend;
    bool computes_in_double, has_exact;
    double adjoint;   /* |<Ax, y> - <x, A'y>| / (|Ax| |y|) */
    double agreement; /* relative difference of an element or sum computed in two ways */
    double repeat;    /* of two equal projections; 0: same bits, as always if stored */
    int most_threads; /* 1: a device, which has threads of its own */
};

static const struct laws all_laws[] = {
    {"cpu", true, true, 1e-12, 2e-7, 0, 3}, /* agreement: stored elements are floats */
    {"poison", true, true, 1e-12, 2e-7, 0, 3},
    {"raster", false, false, 1e-6, 2e-6, 2e-6, 1}, /* sums of some hundred floats, in any order */
    {"compute", false, true, 1e-6, 2e-6, 2e-6, 1}, /* added by atomics in any order */
    {"native", false, true, 1e-6, 2e-6, 0, 3}};

static const struct laws *laws;

static struct bench { /* one fixture, mode and way of storing */
    struct fixture fixture;
    lr_operator_params params;
    lr_operator *op;
    int64_t num_voxels, num_lors;
    uint64_t state;
} bench;

static void bench_init(enum fixture_kind kind)
{
    bench.fixture = kept_fixture(kind);
    bench.params = fixture_params(&bench.fixture, laws->backend, NULL);
    bench.num_voxels = lr_grid_num_voxels(&bench.fixture.grid);
    bench.num_lors = bench.fixture.lors->count;
}

static void bench_open(lr_mode mode, lr_store store)
{
    static const struct lr_backend_choice poison = {.name = "poison", .has_exact = true, .create = poison_create};
    bench.params.mode = mode;
    bench.params.store = store;
    bench.op = keep(strcmp(laws->backend, poison.name) == 0 ? lr_operator_create_among(&bench.params, &poison, 1)
                                                            : lr_operator_create(&bench.params));
    assert_int_equal(lr_operator_get_info(bench.op)->stored, store == LR_STORE_YES);
}

/* Returns true if the backend supports the fixture's scanner. If it does not, the error must name a backend that
 * does. */
static bool is_taken(void)
{
    struct test_log *log = kept_log();
    lr_operator_params params = bench.params;
    params.log = &log->log;
    if (strcmp(laws->backend, "native") != 0) return true;
    lr_operator *op = lr_operator_create(&params);
    lr_operator_destroy(op);
    if (op != NULL) return true;
    print_message("skipped: %s: %s\n", bench.fixture.name, log->error);
    assert_error(log, LR_USAGE, "use backend cpu, or compute on a graphics processor");
    assert_string_equal(bench.fixture.name, "tilted");
    return false;
}

/* Tolerances are relative to the larger number, or to 1e-9 of the largest of all. */
static void assert_same(const double *a, const double *b, int64_t count)
{
    const double largest = fmax(largest_number(a, count), largest_number(b, count));
    for (int64_t k = 0; k < count; k++) {
        const double allowed = laws->agreement * fmax(fabs(a[k]), fabs(b[k]));
        if (!(fabs(a[k] - b[k]) <= fmax(allowed, 1e-9 * largest)))
            fail_msg("%s: element %lld is %.9g and %.9g", bench.fixture.name, (long long)k, a[k], b[k]);
    }
}

/* --- adjoint --- */

static void adjoint(void)
{
    double *x = kept_random_singles(bench.num_voxels, -1.0, 1.0, &bench.state), *ax = kept_doubles(bench.num_lors);
    double *y = kept_random_singles(bench.num_lors, -1.0, 1.0, &bench.state), *aty = kept_doubles(bench.num_voxels);
    assert_ok(array_forward_f64(bench.op, x, ax), array_back_f64(bench.op, y, aty));
    assert_adjoint(bench.fixture.name, ax, y, bench.num_lors, x, aty, bench.num_voxels, laws->adjoint);
}

/* --- same input, same bits --- */

static void assert_repeats(const double *values, const double *again, int64_t count)
{
    const bool stored = lr_operator_get_info(bench.op)->stored;
    for (int64_t k = 0; k < count; k++)
        if (laws->repeat == 0.0 || stored)
            assert_true(values[k] == again[k]);
        else
            assert_close(values[k], again[k], laws->repeat);
}

static void same_bits(void)
{
    double *x = kept_random_doubles(bench.num_voxels, 0.0, 1.0, &bench.state);
    double *data[2] = {kept_doubles(bench.num_lors), kept_doubles(bench.num_lors)};
    double *image[2] = {kept_doubles(bench.num_voxels), kept_doubles(bench.num_voxels)};
    assert_ok(array_forward_f64(bench.op, x, data[0]), array_back_f64(bench.op, data[0], image[0]));
    for (int n = 0; n < 2 * laws->most_threads; n++) { /* first again with the same operator */
        bench.params.threads = n > 0 ? (n + 1) / 2 : bench.params.threads;
        if (n % 2 == 1) bench_open(bench.params.mode, bench.params.store);
        memset(data[1], -1, (size_t)bench.num_lors * sizeof(double));
        memset(image[1], -1, (size_t)bench.num_voxels * sizeof(double));
        assert_ok(array_forward_f64(bench.op, x, data[1]), array_back_f64(bench.op, data[1], image[1]));
        assert_repeats(data[0], data[1], bench.num_lors);
        assert_repeats(image[0], image[1], bench.num_voxels);
    }
}

/* --- rows, columns, sums --- */

/* Returns a row, checked, as a dense array. */
static double *read_row(int64_t row)
{
    double *values = kept_rows(bench.op, row, row + 1);
    for (int64_t lor = 0; lor < bench.num_lors; lor++)
        assert_true(values[lor] <= 1.0 && (values[lor] == 0.0 || lr_lors_in_coincidence(bench.fixture.lors, lor)));
    return values;
}

static double sum_of(const double *values)
{
    double sum = 0.0;
    for (int64_t lor = 0; lor < bench.num_lors; lor++) sum += values[lor];
    return sum;
}

static void rows_are_columns_and_sum_to_the_sensitivity(void)
{
    double *unit = kept_doubles(bench.num_voxels), *data = kept_doubles(bench.num_lors);
    double *unit_lor = kept_doubles(bench.num_lors), *image = kept_doubles(bench.num_voxels), seen = 0.0;
    float *sensitivity = kept_floats(bench.num_voxels);
    assert_ok(array_sensitivity(bench.op, sensitivity));
    for (int k = 0; k < 6; k++) {
        const int64_t v = (int64_t)(test_random(&bench.state) * (double)bench.num_voxels);
        const double *row = read_row(v), sum = sum_of(row);
        assert_same(&sum, &(double){sensitivity[v]}, 1);
        unit[v] = 1.0;
        assert_ok(array_forward_f64(bench.op, unit, data));
        unit[v] = 0.0;
        assert_same(data, row, bench.num_lors);
        int64_t brightest = 0;
        for (int64_t lor = 1; lor < bench.num_lors; lor++) brightest = row[lor] > row[brightest] ? lor : brightest;
        unit_lor[brightest] = 1.0;
        assert_ok(array_back_f64(bench.op, unit_lor, image));
        unit_lor[brightest] = 0.0;
        assert_same(&image[v], &row[brightest], 1);
        seen += sum;
    }
    assert_true(seen > 0.0);
}

static void stored_is_unstored(void)
{
    if (bench.params.store == LR_STORE_YES) return; /* bench.op does not store a matrix */
    double *x = kept_random_doubles(bench.num_voxels, 0.0, 1.0, &bench.state);
    double *y = kept_random_doubles(bench.num_lors, 0.0, 1.0, &bench.state), *data[2], *image[2];
    for (int k = 0; k < 2; k++) {
        data[k] = kept_doubles(bench.num_lors);
        image[k] = kept_doubles(bench.num_voxels);
        if (k == 1) bench_open(bench.params.mode, LR_STORE_YES);
        assert_ok(array_forward_f64(bench.op, x, data[k]), array_back_f64(bench.op, y, image[k]));
    }
    assert_same(data[0], data[1], bench.num_lors);
    assert_same(image[0], image[1], bench.num_voxels);
}

/* A voxel's row is the mean of its sample points' rows. */
static void a_row_is_the_mean_over_its_points(void)
{
    bench.params.samples[1] = 2;
    bench_open(bench.params.mode, bench.params.store);
    for (int k = 0; k < 3; k++) {
        const int64_t v = (int64_t)(test_random(&bench.state) * (double)bench.num_voxels);
        double points[2][3];
        for (int index = 0; index < 2; index++)
            lr_grid_sample_point(&bench.fixture.grid, &(lr_sample){v, {1, 2, 1}, index}, points[index]);
        double *mean = kept_point_rows(bench.op, (const double(*)[3])points, 2);
        for (int64_t lor = 0; lor < bench.num_lors; lor++) mean[lor] = 0.5 * (mean[lor] + mean[bench.num_lors + lor]);
        assert_same(read_row(v), mean, bench.num_lors);
    }
}

static void absorption_takes_from_each_element(void)
{
    const lr_image mu = {lr_grid_centred((const int[3]){3, 3, 3}, (const double[3]){12, 12, 9}),
                         kept_equal_floats(27, 0.01f)};
    const int64_t v = bench.num_voxels / 2;
    const double *without = read_row(v);
    bench.params.mu = &mu;
    if (strcmp(laws->backend, "native") == 0) {
        struct test_log *log = kept_log();
        bench.params.log = &log->log;
        assert_none(lr_operator_create(&bench.params), LR_USAGE, log, "factors per LOR");
    } else {
        bench_open(bench.params.mode, bench.params.store);
        const double *with = read_row(v), sums[2] = {sum_of(without), sum_of(with)};
        for (int64_t l = 0; l < bench.num_lors; l++) {
            assert_int_equal(with[l] > 0.0, without[l] > 0.0);
            assert_true(with[l] <= without[l]);
        }
        /* Lines cross 18 to 48 mm of the medium, so they keep 0.62 to 0.84 of their photon pairs. */
        assert_true(sums[0] > 0.0 && sums[1] > 0.6 * sums[0] && sums[1] < 0.95 * sums[0]);
        adjoint();
    }
}

/* --- beyond the detectors --- */

static void test_nothing_beyond_the_detectors(void **state)
{
    struct test_log *log = kept_log();
    float sensitivity[7 * 7 * 5];
    bench_init(FIXTURE_RING);
    bench.fixture.grid = lr_grid_centred((const int[3]){7, 7, 5}, (const double[3]){11, 11, 6});
    bench.params.log = &log->log;
    bench_open(LR_MODE_SAMPLED, LR_STORE_NO);
    assert_int_equal(log->num_warnings, 1);
    assert_ok(array_sensitivity(bench.op, sensitivity));
    for (int64_t v = 0; v < 7 * 7 * 5; v++) {
        double centre[3];
        lr_grid_voxel_centre(&bench.fixture.grid, v, centre);
        if (fabs(centre[2]) > 8.6 || hypot(centre[0], centre[1]) > 32.0 / cos(0.3927))
            assert_true(sensitivity[v] == 0.0f);
        else if (hypot(centre[0], centre[1]) < 12.0)
            assert_true(sensitivity[v] > 0.0f);
    }
    assert_int_equal(log->num_warnings, 1); /* no second warning */
}

/* All laws, for every fixture and mode, with and without a stored matrix. */
static void test_laws(void **state)
{
    static check_fn *const checks[] = {adjoint,
                                       same_bits,
                                       rows_are_columns_and_sum_to_the_sensitivity,
                                       stored_is_unstored,
                                       a_row_is_the_mean_over_its_points,
                                       absorption_takes_from_each_element};
    bench.state = test_seed();
    /* Programs are compiled for each scanner and mode. */
    const bool takes_all = strcmp(laws->backend, "compute") != 0 || test_takes_all("one of two modes of each scanner");
    for (int kind = 0; kind < FIXTURE_COUNT; kind++) {
        bench_init(kind);
        const int last = !is_taken() ? LR_MODE_SAMPLED - 1 : laws->has_exact ? LR_MODE_EXACT : LR_MODE_SAMPLED;
        for (int k = 0; k < 2 * (last - LR_MODE_SAMPLED + 1); k++) {
            const lr_mode mode = (lr_mode)(LR_MODE_SAMPLED + k / 2);
            if (!takes_all && (mode == LR_MODE_EXACT) != (kind % 2 == 1)) continue;
            bench_open(mode, k % 2 != 0 ? LR_STORE_YES : LR_STORE_NO);
            const struct bench opened = bench;
            const int mark = num_kept();
            for (int n = 0; n < length_of(checks); n++) {
                checks[n]();
                bench.params = opened.params;
                bench.op = opened.op;
                destroy_kept_since(mark);
            }
        }
        destroy_kept(NULL);
    }
}

int main(int argc, char **argv)
{
    const char *backend = argc > 1 ? argv[1] : "cpu";
    laws = &all_laws[0];
    for (int k = 0; k < length_of(all_laws); k++)
        laws = strcmp(all_laws[k].backend, backend) == 0 ? &all_laws[k] : laws;
    if (!fixture_backend_is_usable(strcmp(backend, "poison") == 0 ? "cpu" : backend)) return 77;
    const struct CMUnitTest tests[] = {CASE(test_laws), CASE(test_nothing_beyond_the_detectors)};
    return cmocka_run_group_tests_name(backend, tests, NULL, NULL);
}
