/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of some LORs, and factors per LOR, compared with projections of all LORs, on small scanners, with and
 * without a stored matrix. Argument: the backend; "fake" and "fake64" have no parts. */
#include "fixtures.h"

#include "made_up_backends.h"
#include "model/lors/selection.h"

struct kind {
    const char *backend;
    lr_mode mode;
    double agreement; /* of a sum computed in two ways, relative to the largest: elements or sums are floats */
};

static const struct kind kinds[] = {{"cpu", LR_MODE_EXACT, 3e-7},      {"poison", LR_MODE_SAMPLED, 3e-7},
                                    {"raster", LR_MODE_SAMPLED, 2e-6}, {"compute", LR_MODE_EXACT, 2e-6},
                                    {"fake", LR_MODE_SAMPLED, 3e-7},   {"fake64", LR_MODE_SAMPLED, 3e-7}};

static const struct lr_backend_choice strangers[] = {{.name = "poison", .create = poison_create},
                                                     {.name = "fake", .create = fake_float_create},
                                                     {.name = "fake64", .create = fake_double_create}};

enum { NUM_FIXTURES = 4 };
static const enum fixture_kind fixtures[NUM_FIXTURES] = {FIXTURE_OPPOSED, FIXTURE_RING, FIXTURE_TWO_RINGS,
                                                         FIXTURE_TILTED};

/* Factors that are a hash of the LOR; about one of eight is 0. */
struct source {
    const lr_lors *lors;
    int64_t bad_lor; /* has bad_value; -1 = none */
    float bad_value;
    int64_t longest_span;
    int64_t asked; /* number of LORs */
};

static float factor_of(int64_t lor)
{
    const uint64_t z = ((uint64_t)lor + 1) * 0x9e3779b97f4a7c15u;
    return (z >> 61) == 0 ? 0.0f : (float)((double)(z >> 40) * 0x1.0p-24 + 0.25);
}

static lr_status get_factors(void *user, const lr_lor_span *span, float *values)
{
    struct source *source = user;
    int64_t before = -1;
    assert_true(span->count > 0);
    for (int64_t k = 0; k < span->count; k++) {
        const int64_t lor = span->numbers ? span->numbers[k] : span->first + k;
        assert_true(lor > before && lor < source->lors->count);
        before = lor;
        values[k] = lor == source->bad_lor ? source->bad_value : factor_of(lor);
    }
    source->asked += span->count;
    source->longest_span = span->count > source->longest_span ? span->count : source->longest_span;
    return LR_OK;
}

static const struct kind *kind;

/* A scanner with two operators, A and diag(n) A. */
static struct bench {
    struct fixture fixture;
    struct test_log *log;
    struct source source;
    lr_lor_source factors;
    lr_operator *op, *scaled;
    int64_t num_voxels, num_lors;
    uint64_t state;
} bench;

static lr_operator *create(const lr_lor_source *factors, lr_store store)
{
    lr_operator_params params = fixture_params(&bench.fixture, kind->backend, &bench.log->log);
    params.mode = kind->mode;
    params.store = store;
    params.factors = factors;
    params.deterministic = true; /* results that must be equal are so bit by bit */
    for (int k = 0; k < 3; k++)
        if (strcmp(strangers[k].name, params.backend) == 0)
            return keep(lr_operator_create_among(&params, strangers, 3));
    return keep(lr_operator_create(&params));
}

static void bench_init(const struct fixture *fixture)
{
    bench.fixture = *fixture;
    bench.log = kept_log();
    bench.source = (struct source){.lors = fixture->lors, .bad_lor = -1};
    bench.factors = (lr_lor_source){get_factors, &bench.source};
    bench.num_voxels = lr_grid_num_voxels(&fixture->grid);
    bench.num_lors = fixture->lors->count;
}

/* Runs a test on every scanner, with and without a stored matrix. */
static void for_all(void **state)
{
    check_fn *const check = given_check(state);
    bench.state = test_seed();
    for (int k = 0; k < 2 * NUM_FIXTURES; k++) {
        const lr_store store = k % 2 ? LR_STORE_YES : LR_STORE_NO;
        struct fixture fixture = kept_fixture(fixtures[k / 2]);
        fixture.grid = lr_grid_centred((const int[3]){4, 4, 3}, (const double[3]){2.7, 3.1, 2.9});
        bench_init(&fixture);
        bench.op = create(NULL, store);
        bench.scaled = create(&bench.factors, store);
        assert_int_equal(lr_operator_get_info(bench.op)->stored, store == LR_STORE_YES);
        check();
        destroy_kept(NULL);
    }
}

/* --- helpers --- */

static float *random_floats(int64_t count)
{
    return kept_random_floats(count, -0.5, 1.5, &bench.state);
}

/* Selects every LOR, or pair, with a probability of `share`; never an empty selection. */
static lr_selection choose(bool by_pairs, double share)
{
    const lr_lors *lors = bench.fixture.lors;
    int64_t *chosen = kept(lors->count, sizeof(*chosen)), count = 0;
    int32_t *pairs = kept(lors->num_pairs, sizeof(*pairs));
    const int64_t end = by_pairs ? lors->num_pairs : lors->count;
    for (int64_t k = 0; k < end; k++) {
        if (test_random(&bench.state) < share || (count == 0 && k == end - 1)) {
            chosen[by_pairs ? 0 : count] = k;
            pairs[by_pairs ? count : 0] = (int32_t)k;
            count++;
        }
    }
    return by_pairs ? (lr_selection){.pairs = pairs, .num_pairs = count}
                    : (lr_selection){.lors = chosen, .num_lors = count};
}

static void assert_same(const float *a, const float *b, int64_t count)
{
    const double largest = fmax(largest_number(a, count), largest_number(b, count));
    for (int64_t k = 0; k < count; k++) {
        if (!(fabs((double)a[k] - (double)b[k]) <= kind->agreement * largest)) {
            fail_msg("%s: value %lld is %.9g and %.9g, the largest %.9g", bench.fixture.name, (long long)k,
                     (double)a[k], (double)b[k], largest);
        }
    }
}

static double norm(const float *a, int64_t count)
{
    return sqrt(dot_product(a, a, count));
}

/* --- parts of A and of diag(n) A --- */

static void parts_are_parts(void)
{
    static const double shares[] = {0.7, 0.2, 0.01};
    for (int n = 0; n < 12; n++) {
        lr_operator *op = n % 2 ? bench.scaled : bench.op;
        const lr_selection part = choose(n / 2 % 2, shares[n / 4]);
        const int64_t count = lr_selection_count(bench.fixture.lors, &part);
        float *image = random_floats(bench.num_voxels), *all = kept_floats(bench.num_lors);
        float *ax = kept_floats(count), *picked = kept_floats(count);
        memset(ax, -1, (size_t)count * sizeof(*ax)); /* NaN */
        assert_ok(array_forward(op, image, all), array_forward_part(op, &part, image, ax));
        for (int64_t k = 0; k < count; k++) picked[k] = all[lr_selection_lor(bench.fixture.lors, &part, k)];
        assert_same(ax, picked, count);
        assert_true(norm(ax, count) > 0.0 || 4 * count < bench.num_lors);
        /* The back-projection of a part equals back of the same values among zeros, and is the adjoint of
         * forward_part. */
        float *values = random_floats(count), *among_zeros = kept_floats(bench.num_lors);
        float *aty = kept_floats(bench.num_voxels), *expected = kept_floats(bench.num_voxels);
        for (int64_t k = 0; k < count; k++) among_zeros[lr_selection_lor(bench.fixture.lors, &part, k)] = values[k];
        memset(aty, -1, (size_t)bench.num_voxels * sizeof(*aty));
        assert_ok(array_back(op, among_zeros, expected), array_back_part(op, &part, values, aty));
        assert_same(aty, expected, bench.num_voxels);
        if (norm(ax, count) > 0.0)
            assert_adjoint(bench.fixture.name, ax, values, count, image, aty, bench.num_voxels, 1e-6);
        /* The sensitivity of a part is back_part of ones. */
        for (int64_t k = 0; k < count; k++) values[k] = 1.0f;
        assert_ok(array_back_part(op, &part, values, expected), array_sensitivity_part(op, &part, aty));
        assert_same(aty, expected, bench.num_voxels);
        assert_ok(array_sensitivity(op, aty));
        for (int64_t k = 0; k < bench.num_lors; k++) among_zeros[k] = 1.0f;
        assert_ok(array_back(op, among_zeros, expected));
        assert_same(aty, expected, bench.num_voxels);
    }
}

/* --- diag(n) A --- */

static void multiply(const float *data, float *product)
{
    for (int64_t lor = 0; lor < bench.num_lors; lor++) product[lor] = factor_of(lor) * data[lor];
}

static void factors_are_a_diagonal(void)
{
    float *image = random_floats(bench.num_voxels), *sum = kept_floats(bench.num_voxels);
    float *data = random_floats(bench.num_lors), *want = kept_floats(bench.num_lors);
    float *ax = kept_floats(bench.num_lors), *aty = kept_floats(bench.num_voxels);
    assert_ok(array_forward(bench.op, image, ax));
    multiply(ax, want);
    assert_ok(array_forward(bench.scaled, image, ax));
    assert_true(norm(ax, bench.num_lors) > 0.0);
    assert_same(ax, want, bench.num_lors);
    multiply(data, want);
    assert_ok(array_back(bench.op, want, sum), array_back(bench.scaled, data, aty));
    assert_same(aty, sum, bench.num_voxels);
    assert_adjoint(bench.fixture.name, ax, data, bench.num_lors, image, aty, bench.num_voxels, 1e-6);
}

/* Number of LORs whose factors a forward projection reads from the source. */
static int64_t asked_by(const lr_selection *part, float *values)
{
    float *image = kept_floats(bench.num_voxels);
    for (int64_t v = 0; v < bench.num_voxels; v++) image[v] = 1.0f + (float)(v % 5);
    const int64_t before = bench.source.asked;
    assert_ok(array_forward_part(bench.scaled, part, image, values));
    return bench.source.asked - before;
}

/* Factors of a selection are read from the source only once, even if the selection is passed as another list.
 * Factors of another selection are read anew. */
static void factors_are_kept(void)
{
    const int64_t lors = bench.num_lors;
    int64_t list[3] = {lors / 4, lors / 2, lors - 1}, copy[3], other[3] = {0, lors / 2, lors - 1};
    float *first = kept_floats(lors), *again = kept_floats(lors);
    memcpy(copy, list, sizeof(copy));
    bench.source.asked = 0;
    assert_ints(asked_by(NULL, first), lors, asked_by(NULL, again), 0);
    assert_memory_equal(first, again, (size_t)lors * sizeof(*first));
    assert_int_equal(asked_by(&(lr_selection){.lors = list, .num_lors = 3}, first), 3);
    assert_int_equal(asked_by(&(lr_selection){.lors = copy, .num_lors = 3}, again), 0);
    assert_memory_equal(first, again, 3 * sizeof(*first));
    assert_int_equal(asked_by(&(lr_selection){.lors = other, .num_lors = 3}, again), 3);
    assert_int_equal(asked_by(&(lr_selection){.lors = list, .num_lors = 2}, again), 2);
}

static void rows_have_factors(void)
{
    for (int n = 2; n <= 3; n++) {
        const int64_t row = bench.num_voxels / n;
        double *plain = kept_rows(bench.op, row, row + 1), *scaled = kept_rows(bench.scaled, row, row + 1);
        int64_t counts[2] = {0};
        for (int64_t lor = 0; lor < bench.num_lors; lor++) {
            assert_true(scaled[lor] == (double)factor_of(lor) * plain[lor]);
            counts[0] += plain[lor] > 0.0;
            counts[1] += scaled[lor] > 0.0;
        }
        assert_true(counts[1] > 0 && counts[1] < counts[0]);
    }
}

/* --- more LORs than a window holds --- */

static void expect_sensitivity(const lr_selection *part, float *ones)
{
    float found[2], expected[2];
    for (int64_t lor = 0; lor < bench.num_lors; lor++) ones[lor] = 1.0f;
    assert_ok(array_sensitivity_part(bench.scaled, part, found));
    assert_ok(array_back_part(bench.scaled, part, ones, expected));
    assert_true(expected[0] > 0.01f && expected[1] > 0.01f);
    assert_same(found, expected, 2);
}

/* Four modules of 40 x 40 crystals around a grid of two voxels: 15 million LORs. */
static void test_sensitivity_goes_by_windows(void **state)
{
    lr_module modules[4];
    for (int m = 0; m < 4; m++) {
        const double x = m % 2 ? 0 : 1 - m, y = m % 2 ? 2 - m : 0;
        modules[m] = filled(lr_module, .centre_mm = {60 * x, 60 * y, 0}, .u = {-y, x, 0}, .v = {0, 0, 1},
                            .crystals = {40, 40}, .pitch_mm = {2, 2}, .face_mm = {2, 2}, .depth_mm = 10);
    }
    struct fixture large = {.name = "large",
                            .grid = lr_grid_centred((const int[3]){2, 1, 1}, (const double[3]){7, 2, 2})};
    large.scanner =
        keep(lr_scanner_create(&(lr_scanner_params){.name = "large", .modules = modules, .num_modules = 4}));
    large.lors = keep(lr_lors_create(large.scanner, NULL));
    bench_init(&large);
    bench.scaled = create(&bench.factors, LR_STORE_YES); /* this operator has parts */
    float *ones = kept_floats(bench.num_lors);
    int64_t *odd = kept(bench.num_lors / 2, sizeof(*odd));
    assert_int_equal(bench.num_lors, 6 * 2560000);
    for (int64_t k = 0; k < bench.num_lors / 2; k++) odd[k] = 2 * k + 1;
    expect_sensitivity(NULL, ones);
    expect_sensitivity(&(lr_selection){.lors = odd, .num_lors = bench.num_lors / 2}, ones);
    assert_true(bench.source.longest_span < 1000000); /* the source was read in pieces */
}

/* --- what is refused --- */

static void bad_factors_are_named(void)
{
    static const float bad[] = {-0.5f, NAN, INFINITY};
    float *image = kept_floats(bench.num_voxels), *data = kept_floats(bench.num_lors);
    const lr_selection pair = {.pairs = (const int32_t[]){0}, .num_pairs = 1};
    for (int k = 0; k < 3; k++) {
        bench.source.bad_lor = 127;
        bench.source.bad_value = bad[k];
        assert_fails(array_forward(bench.scaled, image, data), LR_BAD_INPUT, bench.log, "factor of LOR 127 (crystal ");
        assert_int_equal(array_back(bench.scaled, data, image), LR_BAD_INPUT);
        assert_int_equal(array_sensitivity(bench.scaled, image), LR_BAD_INPUT);
        assert_int_equal(array_back_part(bench.scaled, &pair, data, image), LR_BAD_INPUT);
        assert_fails(array_forward_part(bench.scaled, &pair, image, data), LR_BAD_INPUT, bench.log, "127");
        bench.source.bad_lor = -1;
    }
    assert_ok(array_sensitivity(bench.scaled, image));
}

static void faults_and_empty_parts(void)
{
    const int64_t falling[] = {7, 5};
    const lr_selection bad = {.lors = falling, .num_lors = 2}, none = {.lors = falling, .num_lors = 0};
    const lr_selection one = {.lors = falling + 1, .num_lors = 1};
    float *image = random_floats(bench.num_voxels), values[2] = {1.0f, NAN};
    assert_int_equal(array_forward_part(bench.op, &bad, image, values), LR_USAGE);
    assert_int_equal(array_back_part(bench.op, &bad, values, image), LR_USAGE);
    assert_int_equal(array_sensitivity_part(bench.op, &bad, image), LR_USAGE);
    assert_ok(array_forward_part(bench.op, &none, image, NULL));
    assert_int_equal(array_forward_part(bench.op, &one, NULL, values), LR_USAGE);
    assert_int_equal(array_back_part(bench.op, &one, NULL, image), LR_USAGE);
    assert_int_equal(array_sensitivity_part(bench.op, &one, NULL), LR_USAGE);
    assert_fails(array_back_part(bench.op, &one, values + 1, image), LR_BAD_INPUT, bench.log, "LOR 5 ");
    assert_ok(array_back_part(bench.op, &none, NULL, image));
    for (int64_t v = 0; v < bench.num_voxels; v++) {
        assert_true(image[v] == 0.0f);
        image[v] = 1.0f;
    }
    assert_ok(array_sensitivity_part(bench.op, &none, image));
    for (int64_t v = 0; v < bench.num_voxels; v++) assert_true(image[v] == 0.0f);
    assert_true(lr_operator_device_seconds(bench.op) >= 0.0);
}

int main(int argc, char **argv)
{
    const char *backend = argc > 1 ? argv[1] : "cpu";
    for (int k = 0; k < length_of(kinds); k++) kind = strcmp(kinds[k].backend, backend) == 0 ? &kinds[k] : kind;
    const bool is_stranger = strstr(backend, "fake") != NULL || strcmp(backend, "poison") == 0;
    if (kind == NULL || (!is_stranger && !fixture_backend_is_usable(backend))) return kind == NULL ? 1 : 77;
    const struct CMUnitTest tests[] = {
        CASE_OF(for_all, parts_are_parts),       CASE_OF(for_all, factors_are_a_diagonal),
        CASE_OF(for_all, factors_are_kept),      CASE_OF(for_all, rows_have_factors),
        CASE_OF(for_all, bad_factors_are_named), CASE_OF(for_all, faults_and_empty_parts)};
    /* Work of the facade, the same for every backend. */
    const struct CMUnitTest large[] = {CASE(test_sensitivity_goes_by_windows)};
    const int failures = strcmp(backend, "cpu") == 0 ? cmocka_run_group_tests_name("large", large, NULL, NULL) : 0;
    return failures + cmocka_run_group_tests_name(backend, tests, NULL, NULL);
}
