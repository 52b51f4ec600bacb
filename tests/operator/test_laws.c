/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The laws of operators for one backend, on every small scanner, in sampled and exact mode, with and without a stored
 * matrix. Argument: the backend. */
#include "fixtures.h"

#include "operator/facade.h"
#include "poison_backend.h"

struct laws {
    const char *backend;
    bool computes_in_double, has_exact;
    double adjoint;   /* |<Ax, y> - <x, A'y>| / (|Ax| |y|) */
    double agreement; /* of the same element or sum reached in two ways, relative */
    double repeat;    /* how far a forward projection may differ from itself, relative; 0: no bit.
                         A stored matrix repeats to the bit in any case */
    int most_threads; /* 1: a device, whose threads are its own */
};

struct bench { /* one fixture, mode and way of storing */
    const struct laws *laws;
    struct fixture fixture;
    lr_operator_params params;
    lr_operator *op;
    int64_t num_voxels, num_lors;
};

static const struct laws all_laws[] = {
    {"cpu", true, true, 1e-12, 2e-7, 0, 3}, /* agreement: stored elements are floats */
    {"poison", true, true, 1e-12, 2e-7, 0, 3},
    {"raster", false, false, 1e-6, 2e-6, 2e-6, 1}, /* sums of some hundred floats, in any order */
    {"compute", false, true, 1e-6, 2e-6, 2e-6, 1}, /* added by atomics in any order */
    {"native", false, true, 1e-6, 2e-6, 0, 3},
};

static lr_operator *create(const struct laws *laws, const lr_operator_params *params)
{
    static const struct lr_backend_choice poison = {.name = "poison", .has_exact = true, .create = poison_create};
    if (strcmp(laws->backend, poison.name) != 0) return fixture_operator(params);
    lr_operator *op = lr_operator_create_among(params, &poison, 1);
    assert_non_null(op);
    return op;
}

static void bench_init(struct bench *bench, const struct laws *laws, enum fixture_kind kind)
{
    *bench = (struct bench){.laws = laws};
    fixture_init(&bench->fixture, kind);
    bench->params = fixture_params(&bench->fixture, laws->backend, NULL);
    bench->num_voxels = lr_grid_num_voxels(&bench->fixture.grid);
    bench->num_lors = bench->fixture.lors->count;
}

static void bench_open(struct bench *bench, lr_mode mode, lr_store store)
{
    lr_operator_destroy(bench->op);
    bench->params.mode = mode;
    bench->params.store = store;
    bench->op = create(bench->laws, &bench->params);
    assert_int_equal(lr_operator_get_info(bench->op)->stored, store == LR_STORE_YES);
}

static void bench_finish(struct bench *bench)
{
    lr_operator_destroy(bench->op);
    fixture_finish(&bench->fixture);
}

typedef void law(struct bench *bench, uint64_t *state);

/* Returns true if the backend supports the fixture's scanner. If it does not, the error must name a backend that
 * does. */
static bool is_taken(const struct bench *bench)
{
    struct test_log log;
    test_log_init(&log);
    if (strcmp(bench->laws->backend, "native") != 0) return true;
    lr_operator_params params = bench->params;
    params.log = &log.log;
    lr_operator *op = lr_operator_create(&params);
    const bool is_refused = op == NULL && log.status == LR_USAGE;
    assert_true(op != NULL || is_refused);
    if (is_refused) {
        print_message("skipped: %s: %s\n", bench->fixture.name, log.error);
        assert_non_null(strstr(log.error, "use backend compute, or cpu"));
        assert_string_equal(bench->fixture.name, "tilted");
    }
    lr_operator_destroy(op);
    return !is_refused;
}

/* Calls a law for every fixture, mode and way of storing. */
static void for_all(const struct laws *laws, law *check)
{
    uint64_t state = test_seed();
    /* Programs are compiled for each scanner and mode. */
    const bool takes_all = strcmp(laws->backend, "compute") != 0 || test_takes_all("one of two modes of each scanner");
    for (int kind = 0; kind < FIXTURE_COUNT; kind++) {
        struct bench bench;
        bench_init(&bench, laws, kind);
        const int last = !is_taken(&bench) ? LR_MODE_SAMPLED - 1 : laws->has_exact ? LR_MODE_EXACT : LR_MODE_SAMPLED;
        for (int mode = LR_MODE_SAMPLED; mode <= last; mode++) {
            if (!takes_all && (mode == LR_MODE_EXACT) != (kind % 2 == 1)) continue;
            bench_open(&bench, (lr_mode)mode, LR_STORE_NO);
            check(&bench, &state);
            bench_open(&bench, (lr_mode)mode, LR_STORE_YES);
            check(&bench, &state);
        }
        bench_finish(&bench);
    }
}

/* Projections in the backend's own precision, seen as doubles. */
static void forward(const struct bench *bench, const double *image, double *data)
{
    assert_int_equal(array_forward_f64(bench->op, image, data), LR_OK);
}

static void back(const struct bench *bench, const double *data, double *image)
{
    assert_int_equal(array_back_f64(bench->op, data, image), LR_OK);
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0.0;
    for (int64_t k = 0; k < count; k++) sum += a[k] * b[k];
    return sum;
}

static void round_to_float(double *values, int64_t count)
{
    for (int64_t k = 0; k < count; k++) values[k] = (float)values[k];
}

/* Closeness relative to the larger, or to 1e-9 of the largest of all. */
static void assert_same(const struct bench *bench, const double *a, const double *b, int64_t count)
{
    double largest = 0.0;
    for (int64_t k = 0; k < count; k++) largest = fmax(largest, fmax(fabs(a[k]), fabs(b[k])));
    for (int64_t k = 0; k < count; k++) {
        const double allowed = bench->laws->agreement * fmax(fabs(a[k]), fabs(b[k]));
        if (!(fabs(a[k] - b[k]) <= fmax(allowed, 1e-9 * largest)))
            fail_msg("%s: element %lld is %.9g and %.9g", bench->fixture.name, (long long)k, a[k], b[k]);
    }
}

/* --- adjoint --- */

static void check_adjoint(struct bench *bench, uint64_t *state)
{
    static const double signed_range[2] = {-1.0, 1.0};
    double *x = fixture_doubles(bench->num_voxels), *ax = fixture_doubles(bench->num_lors);
    double *y = fixture_doubles(bench->num_lors), *aty = fixture_doubles(bench->num_voxels);
    fixture_fill(x, bench->num_voxels, signed_range, state);
    fixture_fill(y, bench->num_lors, signed_range, state);
    round_to_float(x, bench->num_voxels);
    round_to_float(y, bench->num_lors);
    forward(bench, x, ax);
    back(bench, y, aty);
    const double size = sqrt(dot(ax, ax, bench->num_lors) * dot(y, y, bench->num_lors));
    const double gap = fabs(dot(ax, y, bench->num_lors) - dot(x, aty, bench->num_voxels)) / size;
    if (!(size > 0.0 && gap <= bench->laws->adjoint))
        fail_msg("%s: <Ax, y> and <x, A'y> differ by %.3g of |Ax| |y| = %.3g", bench->fixture.name, gap, size);
    free(x);
    free(y);
    free(ax);
    free(aty);
}

static void test_adjoint(void **state)
{
    for_all(*state, check_adjoint);
}

/* --- same input, same bits --- */

static void project_both(const struct bench *bench, const double *x, double *data, double *image)
{
    forward(bench, x, data);
    back(bench, data, image);
}

static void assert_repeats(const struct bench *bench, const double *values, const double *again, int64_t count)
{
    const bool stored = lr_operator_get_info(bench->op)->stored;
    for (int64_t k = 0; k < count; k++)
        if (bench->laws->repeat == 0.0 || stored)
            assert_true(values[k] == again[k]);
        else
            assert_close(values[k], again[k], bench->laws->repeat);
}

static void check_bits(struct bench *bench, uint64_t *state)
{
    static const double range[2] = {0.0, 1.0};
    const size_t image_bytes = (size_t)bench->num_voxels * sizeof(double);
    double *x = fixture_doubles(bench->num_voxels);
    double *data = fixture_doubles(bench->num_lors), *data2 = fixture_doubles(bench->num_lors);
    double *image = fixture_doubles(bench->num_voxels);
    double *image2 = fixture_doubles(bench->num_voxels);
    fixture_fill(x, bench->num_voxels, range, state);
    project_both(bench, x, data, image);
    for (int threads = 1; threads <= bench->laws->most_threads; threads++) {
        project_both(bench, x, data2, image2); /* first again with the same operator */
        assert_repeats(bench, data, data2, bench->num_lors);
        assert_repeats(bench, image, image2, bench->num_voxels);
        bench->params.threads = threads;
        bench_open(bench, bench->params.mode, bench->params.store);
        memset(data2, -1, (size_t)bench->num_lors * sizeof(double));
        memset(image2, -1, image_bytes);
        project_both(bench, x, data2, image2);
        assert_repeats(bench, data, data2, bench->num_lors);
        assert_repeats(bench, image, image2, bench->num_voxels);
    }
    double *owned[] = {x, data, data2, image, image2};
    for (int k = 0; k < 5; k++) free(owned[k]);
}

static void test_same_bits(void **state)
{
    for_all(*state, check_bits);
}

/* --- rows, columns, sums --- */

struct dense_row {
    const struct bench *bench;
    double *values; /* [num_lors] */
    double sum;
    int64_t row;
};

static lr_status take_dense(void *user, const lr_row *row)
{
    struct dense_row *dense = user;
    const lr_lors *lors = dense->bench->fixture.lors;
    memset(dense->values, 0, (size_t)lors->count * sizeof(*dense->values));
    dense->sum = 0.0;
    dense->row = row->row;
    for (int64_t k = 0; k < row->count; k++) {
        assert_true(row->lor[k] >= 0 && row->lor[k] < lors->count);
        assert_true(k == 0 || row->lor[k] > row->lor[k - 1]);
        assert_true(row->probability[k] > 0.0 && row->probability[k] <= 1.0);
        assert_true(lr_lors_in_coincidence(lors, row->lor[k]));
        dense->values[row->lor[k]] = row->probability[k];
        dense->sum += row->probability[k];
    }
    return LR_OK;
}

static void read_row(struct dense_row *dense, int64_t row)
{
    const lr_row_sink sink = {take_dense, dense};
    dense->row = -1;
    assert_int_equal(lr_operator_rows(dense->bench->op, row, row + 1, &sink), LR_OK);
    assert_int_equal(dense->row, row);
}

static int64_t brightest(const double *values, int64_t count)
{
    int64_t best = 0;
    for (int64_t k = 1; k < count; k++) best = values[k] > values[best] ? k : best;
    return best;
}

static void check_rows(struct bench *bench, uint64_t *state)
{
    struct dense_row dense = {.bench = bench, .values = fixture_doubles(bench->num_lors)};
    double *unit = fixture_doubles(bench->num_voxels), *data = fixture_doubles(bench->num_lors);
    double *unit_lor = fixture_doubles(bench->num_lors);
    double *image = fixture_doubles(bench->num_voxels);
    float *sensitivity = calloc((size_t)bench->num_voxels, sizeof(*sensitivity));
    assert_non_null(sensitivity);
    assert_int_equal(array_sensitivity(bench->op, sensitivity), LR_OK);
    double seen = 0.0;
    for (int k = 0; k < 6; k++) {
        const int64_t v = (int64_t)(test_random(state) * (double)bench->num_voxels);
        read_row(&dense, v);
        assert_same(bench, &dense.sum, &(double){sensitivity[v]}, 1);
        unit[v] = 1.0;
        forward(bench, unit, data);
        unit[v] = 0.0;
        assert_same(bench, data, dense.values, bench->num_lors);
        const int64_t lor = brightest(dense.values, bench->num_lors);
        unit_lor[lor] = 1.0;
        back(bench, unit_lor, image);
        unit_lor[lor] = 0.0;
        assert_same(bench, &image[v], &dense.values[lor], 1);
        seen += dense.sum;
    }
    assert_true(seen > 0.0);
    double *owned[] = {dense.values, unit, data, unit_lor, image};
    for (int k = 0; k < 5; k++) free(owned[k]);
    free(sensitivity);
}

static void test_rows_are_columns_and_sum_to_the_sensitivity(void **state)
{
    for_all(*state, check_rows);
}

/* --- stored or not --- */

static void check_stored(struct bench *bench, uint64_t *state)
{
    static const double range[2] = {0.0, 1.0};
    if (bench->params.store == LR_STORE_YES) return; /* looked at from the other side */
    double *x = fixture_doubles(bench->num_voxels), *y = fixture_doubles(bench->num_lors);
    double *data[2], *image[2];
    fixture_fill(x, bench->num_voxels, range, state);
    fixture_fill(y, bench->num_lors, range, state);
    for (int k = 0; k < 2; k++) {
        data[k] = fixture_doubles(bench->num_lors);
        image[k] = fixture_doubles(bench->num_voxels);
        bench_open(bench, bench->params.mode, k == 0 ? LR_STORE_NO : LR_STORE_YES);
        forward(bench, x, data[k]);
        back(bench, y, image[k]);
    }
    assert_same(bench, data[0], data[1], bench->num_lors);
    assert_same(bench, image[0], image[1], bench->num_voxels);
    double *owned[] = {x, y, data[0], data[1], image[0], image[1]};
    for (int k = 0; k < 6; k++) free(owned[k]);
}

static void test_stored_is_unstored(void **state)
{
    for_all(*state, check_stored);
}

/* --- sample points --- */

struct mean_row {
    double *values; /* [num_lors] */
};

static lr_status take_half(void *user, const lr_row *row)
{
    struct mean_row *mean = user;
    for (int64_t k = 0; k < row->count; k++) mean->values[row->lor[k]] += 0.5 * row->probability[k];
    return LR_OK;
}

/* A voxel's row is the mean of its sample points' rows. */
static void check_samples(struct bench *bench, uint64_t *state)
{
    const int samples[3] = {1, 2, 1};
    memcpy(bench->params.samples, samples, sizeof(samples));
    bench_open(bench, bench->params.mode, bench->params.store);
    struct dense_row dense = {.bench = bench, .values = fixture_doubles(bench->num_lors)};
    for (int k = 0; k < 3; k++) {
        const int64_t v = (int64_t)(test_random(state) * (double)bench->num_voxels);
        struct mean_row mean = {fixture_doubles(bench->num_lors)};
        const lr_row_sink sink = {take_half, &mean};
        double points[2][3];
        for (int index = 0; index < 2; index++)
            lr_grid_sample_point(&bench->fixture.grid, &(lr_sample){v, {1, 2, 1}, index}, points[index]);
        assert_int_equal(lr_operator_point_rows(bench->op, (const double(*)[3])points, 2, &sink), LR_OK);
        read_row(&dense, v);
        assert_same(bench, dense.values, mean.values, bench->num_lors);
        free(mean.values);
    }
    bench->params.samples[1] = 1;
    free(dense.values);
}

static void test_a_row_is_the_mean_over_its_points(void **state)
{
    for_all(*state, check_samples);
}

/* --- absorption --- */

static void check_absorption(struct bench *bench, uint64_t *state)
{
    float values[27];
    const lr_image mu = {lr_grid_centred((const int[3]){3, 3, 3}, (const double[3]){12, 12, 9}), values};
    for (int k = 0; k < 27; k++) values[k] = 0.01f;
    struct dense_row without = {.bench = bench, .values = fixture_doubles(bench->num_lors)};
    struct dense_row with = {.bench = bench, .values = fixture_doubles(bench->num_lors)};
    const int64_t v = bench->num_voxels / 2;
    read_row(&without, v);
    bench->params.mu = &mu;
    if (strcmp(bench->laws->backend, "native") == 0) {
        struct test_log log;
        test_log_init(&log);
        bench->params.log = &log.log;
        assert_null(lr_operator_create(&bench->params));
        assert_int_equal(log.status, LR_USAGE);
        assert_non_null(strstr(log.error, "factors per LOR"));
        bench->params.log = NULL;
        bench->params.mu = NULL;
        free(without.values);
        free(with.values);
        return;
    }
    bench_open(bench, bench->params.mode, bench->params.store);
    read_row(&with, v);
    for (int64_t l = 0; l < bench->num_lors; l++) {
        assert_int_equal(with.values[l] > 0.0, without.values[l] > 0.0);
        assert_true(with.values[l] <= without.values[l]);
    }
    /* Lines cross 18 to 48 mm of the medium, so they keep 0.62 to 0.84 of their photon pairs. */
    assert_true(without.sum > 0.0 && with.sum > 0.6 * without.sum && with.sum < 0.95 * without.sum);
    check_adjoint(bench, state);
    bench->params.mu = NULL;
    free(without.values);
    free(with.values);
}

static void test_absorption_takes_from_each_element(void **state)
{
    for_all(*state, check_absorption);
}

/* --- beyond the detectors --- */

static void test_nothing_beyond_the_detectors(void **state)
{
    const struct laws *laws = *state;
    struct bench bench;
    struct test_log log;
    test_log_init(&log);
    bench_init(&bench, laws, FIXTURE_RING);
    bench.fixture.grid = lr_grid_centred((const int[3]){7, 7, 5}, (const double[3]){11, 11, 6});
    bench.num_voxels = 7 * 7 * 5;
    bench.params.log = &log.log;
    bench_open(&bench, LR_MODE_SAMPLED, LR_STORE_NO);
    assert_int_equal(log.num_warnings, 1);
    float sensitivity[7 * 7 * 5];
    assert_int_equal(array_sensitivity(bench.op, sensitivity), LR_OK);
    for (int64_t v = 0; v < bench.num_voxels; v++) {
        double centre[3];
        lr_grid_voxel_centre(&bench.fixture.grid, v, centre);
        if (fabs(centre[2]) > 8.6 || hypot(centre[0], centre[1]) > 32.0 / cos(0.3927))
            assert_true(sensitivity[v] == 0.0f);
        else if (hypot(centre[0], centre[1]) < 12.0)
            assert_true(sensitivity[v] > 0.0f);
    }
    assert_int_equal(log.num_warnings, 1); /* not again */
    bench_finish(&bench);
}

int main(int argc, char **argv)
{
    const char *backend = argc > 1 ? argv[1] : "cpu";
    const struct laws *laws = &all_laws[0];
    for (size_t k = 0; k < sizeof(all_laws) / sizeof(all_laws[0]); k++)
        laws = strcmp(all_laws[k].backend, backend) == 0 ? &all_laws[k] : laws;
    if (!fixture_backend_is_usable(strcmp(backend, "poison") == 0 ? "cpu" : backend)) return 77;
    void *given = (void *)(uintptr_t)laws;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_adjoint, given),
        cmocka_unit_test_prestate(test_same_bits, given),
        cmocka_unit_test_prestate(test_rows_are_columns_and_sum_to_the_sensitivity, given),
        cmocka_unit_test_prestate(test_stored_is_unstored, given),
        cmocka_unit_test_prestate(test_a_row_is_the_mean_over_its_points, given),
        cmocka_unit_test_prestate(test_absorption_takes_from_each_element, given),
        cmocka_unit_test_prestate(test_nothing_beyond_the_detectors, given),
    };
    return cmocka_run_group_tests_name(backend, tests, NULL, NULL);
}
