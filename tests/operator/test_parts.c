/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of some LORs, and factors per LOR, compared with projections of all LORs, on small scanners, with and
 * without a stored matrix. Argument: the backend; "fake" and "fake64" have no parts. */
#include "fixtures.h"

#include "fake_backend.h"
#include "poison_backend.h"

struct kind {
    const char *backend;
    lr_mode mode;
    double agreement; /* of a sum reached in two ways, over the largest: elements or sums in float */
};

static const struct kind kinds[] = {
    {"cpu", LR_MODE_EXACT, 3e-7},     {"poison", LR_MODE_SAMPLED, 3e-7}, {"raster", LR_MODE_SAMPLED, 2e-6},
    {"compute", LR_MODE_EXACT, 2e-6}, {"fake", LR_MODE_SAMPLED, 3e-7},   {"fake64", LR_MODE_SAMPLED, 3e-7},
};

static const struct lr_backend_choice strangers[] = {
    {.name = "poison", .create = poison_create},
    {.name = "fake", .create = fake_float_create},
    {.name = "fake64", .create = fake_double_create},
};

enum { NUM_FIXTURES = 4 };
static const enum fixture_kind fixtures[NUM_FIXTURES] = {FIXTURE_OPPOSED, FIXTURE_RING, FIXTURE_TWO_RINGS,
                                                         FIXTURE_TILTED};

/* Factors made of a hash of the LOR; about one of eight is 0. */
struct source {
    const lr_lors *lors;
    int64_t bad_lor; /* gets bad_value; -1 = none */
    float bad_value;
    int64_t longest_span;
    int64_t asked; /* LORs */
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

/* A scanner with two operators, A and diag(n) A. */
struct bench {
    const struct kind *kind;
    struct fixture fixture;
    struct test_log log;
    struct source source;
    lr_lor_source factors;
    lr_operator *op, *scaled;
    int64_t num_voxels, num_lors;
    uint64_t *state;
};

static lr_operator *create(struct bench *bench, const lr_lor_source *factors, lr_store store)
{
    lr_operator_params params = fixture_params(&bench->fixture, bench->kind->backend, &bench->log.log);
    params.mode = bench->kind->mode;
    params.store = store;
    params.factors = factors;
    params.deterministic = true; /* whatever is equal here is equal to the bit */
    for (int k = 0; k < 3; k++)
        if (strcmp(strangers[k].name, params.backend) == 0) return lr_operator_create_among(&params, strangers, 3);
    return fixture_operator(&params);
}

static void bench_init(struct bench *bench, const struct kind *kind, enum fixture_kind fixture, lr_store store)
{
    *bench = (struct bench){.kind = kind};
    test_log_init(&bench->log);
    fixture_init(&bench->fixture, fixture);
    bench->fixture.grid = lr_grid_centred((const int[3]){4, 4, 3}, (const double[3]){2.7, 3.1, 2.9});
    bench->source = (struct source){.lors = bench->fixture.lors, .bad_lor = -1};
    bench->factors = (lr_lor_source){get_factors, &bench->source};
    bench->op = create(bench, NULL, store);
    bench->scaled = create(bench, &bench->factors, store);
    assert_true(bench->op != NULL && bench->scaled != NULL);
    assert_int_equal(lr_operator_get_info(bench->op)->stored, store == LR_STORE_YES);
    bench->num_voxels = lr_grid_num_voxels(&bench->fixture.grid);
    bench->num_lors = bench->fixture.lors->count;
}

static void bench_finish(struct bench *bench)
{
    lr_operator_destroy(bench->op);
    lr_operator_destroy(bench->scaled);
    fixture_finish(&bench->fixture);
}

typedef void law(struct bench *bench);

static void for_all(const struct kind *kind, law *check)
{
    uint64_t state = test_seed();
    for (int k = 0; k < NUM_FIXTURES; k++) {
        for (int stored = 0; stored < 2; stored++) {
            struct bench bench;
            bench_init(&bench, kind, fixtures[k], stored ? LR_STORE_YES : LR_STORE_NO);
            bench.state = &state;
            check(&bench);
            bench_finish(&bench);
        }
    }
}

/* --- helpers --- */

static float *floats(int64_t count)
{
    float *values = calloc((size_t)count + 1, sizeof(*values));
    assert_non_null(values);
    return values;
}

static float *random_floats(const struct bench *bench, int64_t count)
{
    float *values = floats(count);
    for (int64_t k = 0; k < count; k++) values[k] = (float)(2.0 * test_random(bench->state) - 0.5);
    return values;
}

/* A selection with lists of its own: every LOR, or pair, with a probability. Never empty. */
struct chosen {
    lr_selection selection;
    int64_t *lors;
    int32_t *pairs;
    int64_t count;
};

static void choose(const struct bench *bench, bool by_pairs, double share, struct chosen *chosen)
{
    const lr_lors *lors = bench->fixture.lors;
    *chosen = (struct chosen){.lors = calloc((size_t)lors->count, sizeof(int64_t)),
                              .pairs = calloc((size_t)lors->num_pairs, sizeof(int32_t))};
    assert_true(chosen->lors != NULL && chosen->pairs != NULL);
    const int64_t end = by_pairs ? lors->num_pairs : lors->count;
    int64_t count = 0;
    for (int64_t k = 0; k < end; k++) {
        if (test_random(bench->state) < share || (count == 0 && k == end - 1)) {
            chosen->lors[by_pairs ? 0 : count] = k;
            chosen->pairs[by_pairs ? count : 0] = (int32_t)k;
            count++;
        }
    }
    chosen->selection = by_pairs ? (lr_selection){.pairs = chosen->pairs, .num_pairs = count}
                                 : (lr_selection){.lors = chosen->lors, .num_lors = count};
    chosen->count = lr_selection_count(lors, &chosen->selection);
}

static void chosen_finish(struct chosen *chosen)
{
    free(chosen->lors);
    free(chosen->pairs);
}

/* LOR of each position, worked out from the lists. */
static int64_t lor_at(const struct bench *bench, const lr_selection *selection, int64_t position)
{
    const lr_lors *lors = bench->fixture.lors;
    if (selection->lors != NULL) return selection->lors[position];
    int64_t k = 0;
    for (;; k++) {
        const int32_t pair = selection->pairs[k];
        const int64_t size = lors->offsets[pair + 1] - lors->offsets[pair];
        if (position < size) return lors->offsets[pair] + position;
        position -= size;
    }
}

static void assert_same(const struct bench *bench, const float *a, const float *b, int64_t count)
{
    double largest = 0.0;
    for (int64_t k = 0; k < count; k++) largest = fmax(largest, fmax(fabs((double)a[k]), fabs((double)b[k])));
    for (int64_t k = 0; k < count; k++) {
        const double gap = fabs((double)a[k] - (double)b[k]);
        if (!(gap <= bench->kind->agreement * largest)) {
            fail_msg("%s: value %lld is %.9g and %.9g, the largest %.9g", bench->fixture.name, (long long)k,
                     (double)a[k], (double)b[k], largest);
        }
    }
}

static double dot(const float *a, const float *b, int64_t count)
{
    double sum = 0.0;
    for (int64_t k = 0; k < count; k++) sum += (double)a[k] * (double)b[k];
    return sum;
}

static double norm(const float *a, int64_t count)
{
    return sqrt(dot(a, a, count));
}

/* --- parts of A and of diag(n) A --- */

/* op: one of the bench's. */
static void check_forward_part(const struct bench *bench, lr_operator *op, const struct chosen *chosen)
{
    float *image = random_floats(bench, bench->num_voxels), *all = floats(bench->num_lors);
    float *values = floats(chosen->count), *picked = floats(chosen->count);
    memset(values, -1, (size_t)chosen->count * sizeof(*values)); /* NaN */
    assert_int_equal(array_forward(op, image, all), LR_OK);
    assert_int_equal(array_forward_part(op, &chosen->selection, image, values), LR_OK);
    for (int64_t k = 0; k < chosen->count; k++) picked[k] = all[lor_at(bench, &chosen->selection, k)];
    assert_same(bench, values, picked, chosen->count);
    assert_true(norm(values, chosen->count) > 0.0 || 4 * chosen->count < bench->num_lors);
    free(image);
    free(all);
    free(values);
    free(picked);
}

/* back_part of values is back of the same among zeros, and the adjoint of forward_part. */
static void check_back_part(const struct bench *bench, lr_operator *op, const struct chosen *chosen)
{
    float *values = random_floats(bench, chosen->count), *all = floats(bench->num_lors);
    float *image = random_floats(bench, bench->num_voxels), *ax = floats(chosen->count);
    float *aty = floats(bench->num_voxels), *expected = floats(bench->num_voxels);
    for (int64_t k = 0; k < chosen->count; k++) all[lor_at(bench, &chosen->selection, k)] = values[k];
    memset(aty, -1, (size_t)bench->num_voxels * sizeof(*aty));
    assert_int_equal(array_back(op, all, expected), LR_OK);
    assert_int_equal(array_back_part(op, &chosen->selection, values, aty), LR_OK);
    assert_same(bench, aty, expected, bench->num_voxels);
    assert_int_equal(array_forward_part(op, &chosen->selection, image, ax), LR_OK);
    const double gap = fabs(dot(ax, values, chosen->count) - dot(image, aty, bench->num_voxels));
    assert_true(gap <= 1e-6 * norm(ax, chosen->count) * norm(values, chosen->count));
    float *owned[] = {values, all, image, ax, aty, expected};
    for (int k = 0; k < 6; k++) free(owned[k]);
}

static void check_parts(struct bench *bench)
{
    static const double shares[] = {0.7, 0.2, 0.01};
    for (int k = 0; k < 6; k++) {
        struct chosen chosen;
        choose(bench, k % 2, shares[k / 2], &chosen);
        check_forward_part(bench, bench->op, &chosen);
        check_back_part(bench, bench->op, &chosen);
        check_forward_part(bench, bench->scaled, &chosen);
        check_back_part(bench, bench->scaled, &chosen);
        chosen_finish(&chosen);
    }
}

static void test_parts_are_parts(void **state)
{
    for_all(*state, check_parts);
}

/* --- partitions --- */

/* Adds A^T of each of four subsets of the module pairs, values NULL: the sensitivity. */
static void add_subsets(const struct bench *bench, lr_operator *op, const float *data, float *sum)
{
    const lr_lors *lors = bench->fixture.lors;
    float *values = floats(bench->num_lors), *image = floats(bench->num_voxels);
    int32_t *pairs = calloc((size_t)lors->num_pairs, sizeof(*pairs));
    assert_non_null(pairs);
    for (int subset = 0; subset < 4; subset++) {
        lr_selection part = {.pairs = pairs};
        int64_t count = 0;
        for (int64_t pair = subset; pair < lors->num_pairs; pair += 4) {
            pairs[part.num_pairs++] = (int32_t)pair;
            for (int64_t lor = lors->offsets[pair]; data && lor < lors->offsets[pair + 1]; lor++)
                values[count++] = data[lor];
        }
        memset(image, -1, (size_t)bench->num_voxels * sizeof(*image));
        assert_int_equal(data ? array_back_part(op, &part, values, image) : array_sensitivity_part(op, &part, image),
                         LR_OK);
        for (int64_t v = 0; v < bench->num_voxels; v++) sum[v] += image[v];
    }
    free(values);
    free(image);
    free(pairs);
}

static void check_partition(const struct bench *bench, lr_operator *op)
{
    float *data = random_floats(bench, bench->num_lors);
    float *whole = floats(bench->num_voxels), *sum = floats(bench->num_voxels);
    add_subsets(bench, op, data, sum);
    assert_int_equal(array_back(op, data, whole), LR_OK);
    assert_true(norm(whole, bench->num_voxels) > 0.0);
    assert_same(bench, sum, whole, bench->num_voxels);
    memset(sum, 0, (size_t)bench->num_voxels * sizeof(*sum));
    add_subsets(bench, op, NULL, sum);
    assert_int_equal(array_sensitivity_part(op, NULL, whole), LR_OK);
    assert_same(bench, sum, whole, bench->num_voxels);
    for (int64_t k = 0; k < bench->num_lors; k++) data[k] = 1.0f;
    assert_int_equal(array_back(op, data, sum), LR_OK);
    assert_same(bench, sum, whole, bench->num_voxels);
    free(data);
    free(whole);
    free(sum);
}

static void check_partitions(struct bench *bench)
{
    check_partition(bench, bench->op);
    check_partition(bench, bench->scaled);
}

static void test_subsets_sum_to_the_whole(void **state)
{
    for_all(*state, check_partitions);
}

/* --- diag(n) A --- */

static void multiply(const struct bench *bench, const float *data, float *product)
{
    for (int64_t lor = 0; lor < bench->num_lors; lor++) product[lor] = factor_of(lor) * data[lor];
}

static void check_diagonal(struct bench *bench)
{
    float *image = random_floats(bench, bench->num_voxels), *sum = floats(bench->num_voxels);
    float *data = random_floats(bench, bench->num_lors), *want = floats(bench->num_lors);
    float *ax = floats(bench->num_lors), *aty = floats(bench->num_voxels);
    assert_int_equal(array_forward(bench->op, image, ax), LR_OK);
    multiply(bench, ax, want);
    assert_int_equal(array_forward(bench->scaled, image, ax), LR_OK);
    assert_true(norm(ax, bench->num_lors) > 0.0);
    assert_same(bench, ax, want, bench->num_lors);
    multiply(bench, data, want);
    assert_int_equal(array_back(bench->op, want, sum), LR_OK);
    assert_int_equal(array_back(bench->scaled, data, aty), LR_OK);
    assert_same(bench, aty, sum, bench->num_voxels);
    const double gap = fabs(dot(ax, data, bench->num_lors) - dot(image, aty, bench->num_voxels));
    assert_true(gap <= 1e-6 * norm(ax, bench->num_lors) * norm(data, bench->num_lors));
    float *owned[] = {image, sum, data, want, ax, aty};
    for (int k = 0; k < 6; k++) free(owned[k]);
}

static void test_factors_are_a_diagonal(void **state)
{
    for_all(*state, check_diagonal);
}

/* LORs that the source is asked for by a projection forward. */
static int64_t asked_by(struct bench *bench, const lr_selection *part, float *values)
{
    float *image = floats(bench->num_voxels);
    for (int64_t v = 0; v < bench->num_voxels; v++) image[v] = 1.0f + (float)(v % 5);
    const int64_t before = bench->source.asked;
    assert_int_equal(array_forward_part(bench->scaled, part, image, values), LR_OK);
    free(image);
    return bench->source.asked - before;
}

/* Factors of a selection are read from the source only once, even if the selection is passed as another list.
 * Factors of another selection are read anew. */
static void check_kept(struct bench *bench)
{
    const int64_t lors = bench->num_lors;
    int64_t list[3] = {lors / 4, lors / 2, lors - 1}, copy[3], other[3] = {0, lors / 2, lors - 1};
    float *first = floats(lors), *again = floats(lors);
    memcpy(copy, list, sizeof(copy));
    bench->source.asked = 0;
    assert_int_equal(asked_by(bench, NULL, first), lors);
    assert_int_equal(asked_by(bench, NULL, again), 0);
    assert_memory_equal(first, again, (size_t)lors * sizeof(*first));
    assert_int_equal(asked_by(bench, &(lr_selection){.lors = list, .num_lors = 3}, first), 3);
    assert_int_equal(asked_by(bench, &(lr_selection){.lors = copy, .num_lors = 3}, again), 0);
    assert_memory_equal(first, again, 3 * sizeof(*first));
    assert_int_equal(asked_by(bench, &(lr_selection){.lors = other, .num_lors = 3}, again), 3);
    assert_int_equal(asked_by(bench, &(lr_selection){.lors = list, .num_lors = 2}, again), 2);
    free(first);
    free(again);
}

static void test_factors_are_kept(void **state)
{
    for_all(*state, check_kept);
}

/* A row, dense. */
struct dense {
    double *values;
    int64_t count;
};

static lr_status take_dense(void *user, const lr_row *row)
{
    struct dense *dense = user;
    for (int64_t k = 0; k < row->count; k++) {
        assert_true(row->probability[k] > 0.0);
        dense->values[row->lor[k]] = row->probability[k];
    }
    dense->count += row->count;
    return LR_OK;
}

static void check_row(const struct bench *bench, int64_t row)
{
    struct dense plain = {.values = fixture_doubles(bench->num_lors)};
    struct dense scaled = {.values = fixture_doubles(bench->num_lors)};
    assert_int_equal(lr_operator_rows(bench->op, row, row + 1, &(lr_row_sink){take_dense, &plain}), LR_OK);
    assert_int_equal(lr_operator_rows(bench->scaled, row, row + 1, &(lr_row_sink){take_dense, &scaled}), LR_OK);
    assert_true(scaled.count > 0 && scaled.count < plain.count);
    for (int64_t lor = 0; lor < bench->num_lors; lor++)
        assert_true(scaled.values[lor] == (double)factor_of(lor) * plain.values[lor]);
    free(plain.values);
    free(scaled.values);
}

static void check_rows(struct bench *bench)
{
    check_row(bench, bench->num_voxels / 2);
    check_row(bench, bench->num_voxels / 3);
}

static void test_rows_have_factors(void **state)
{
    for_all(*state, check_rows);
}

/* --- more LORs than a window holds --- */

/* Four modules of 40 x 40 crystals around a grid of two voxels: 15 million LORs. */
static void large_init(struct fixture *fixture)
{
    lr_module modules[4];
    for (int m = 0; m < 4; m++) {
        const double x = m % 2 ? 0 : 1 - m, y = m % 2 ? 2 - m : 0;
        modules[m] = (lr_module){.centre_mm = {60 * x, 60 * y, 0},
                                 .u = {-y, x, 0},
                                 .v = {0, 0, 1},
                                 .crystals = {40, 40},
                                 .pitch_mm = {2, 2},
                                 .face_mm = {2, 2},
                                 .depth_mm = 10};
    }
    *fixture = (struct fixture){.name = "large"};
    fixture->scanner = lr_scanner_create(&(lr_scanner_params){.name = "large", .modules = modules, .num_modules = 4});
    assert_non_null(fixture->scanner);
    fixture->lors = lr_lors_create(fixture->scanner, NULL);
    assert_non_null(fixture->lors);
    fixture->grid = lr_grid_centred((const int[3]){2, 1, 1}, (const double[3]){7, 2, 2});
}

static void expect_sensitivity(const struct bench *bench, const lr_selection *part, float *ones)
{
    float found[2], expected[2];
    for (int64_t lor = 0; lor < bench->num_lors; lor++) ones[lor] = 1.0f;
    assert_int_equal(array_sensitivity_part(bench->scaled, part, found), LR_OK);
    assert_int_equal(array_back_part(bench->scaled, part, ones, expected), LR_OK);
    assert_true(expected[0] > 0.01f && expected[1] > 0.01f);
    assert_same(bench, found, expected, 2);
}

static void test_sensitivity_goes_by_windows(void **state)
{
    struct bench bench = {.kind = *state};
    test_log_init(&bench.log);
    large_init(&bench.fixture);
    bench.num_lors = bench.fixture.lors->count;
    bench.source = (struct source){.lors = bench.fixture.lors, .bad_lor = -1};
    bench.factors = (lr_lor_source){get_factors, &bench.source};
    bench.scaled = create(&bench, &bench.factors, LR_STORE_YES); /* which has parts */
    float *ones = floats(bench.num_lors);
    int64_t *odd = calloc((size_t)bench.num_lors / 2, sizeof(*odd));
    assert_true(bench.num_lors == 6 * 2560000 && odd != NULL);
    for (int64_t k = 0; k < bench.num_lors / 2; k++) odd[k] = 2 * k + 1;
    expect_sensitivity(&bench, NULL, ones);
    expect_sensitivity(&bench, &(lr_selection){.lors = odd, .num_lors = bench.num_lors / 2}, ones);
    assert_true(bench.source.longest_span < 1000000); /* asked for piece by piece */
    free(ones);
    free(odd);
    lr_operator_destroy(bench.scaled);
    fixture_finish(&bench.fixture);
}

/* --- what is refused --- */

static void expect_words(struct bench *bench, const char *words)
{
    assert_int_equal(bench->log.status, LR_BAD_INPUT);
    if (strstr(bench->log.error, words) == NULL) fail_msg("\"%s\" does not say \"%s\"", bench->log.error, words);
}

static void check_bad_factors(struct bench *bench)
{
    static const float bad[] = {-0.5f, NAN, INFINITY};
    float *image = floats(bench->num_voxels), *data = floats(bench->num_lors);
    const lr_selection pair = {.pairs = (const int32_t[]){0}, .num_pairs = 1};
    for (int k = 0; k < 3; k++) {
        bench->source.bad_lor = 127;
        bench->source.bad_value = bad[k];
        assert_int_equal(array_forward(bench->scaled, image, data), LR_BAD_INPUT);
        expect_words(bench, "factor of LOR 127 (crystal ");
        assert_int_equal(array_back(bench->scaled, data, image), LR_BAD_INPUT);
        assert_int_equal(array_sensitivity(bench->scaled, image), LR_BAD_INPUT);
        assert_int_equal(array_back_part(bench->scaled, &pair, data, image), LR_BAD_INPUT);
        bench->log.status = LR_OK;
        assert_int_equal(array_forward_part(bench->scaled, &pair, image, data), LR_BAD_INPUT);
        expect_words(bench, "127");
        bench->source.bad_lor = -1;
    }
    assert_int_equal(array_sensitivity(bench->scaled, image), LR_OK);
    free(image);
    free(data);
}

static void test_bad_factors_are_named(void **state)
{
    for_all(*state, check_bad_factors);
}

static void check_faults(struct bench *bench)
{
    const int64_t falling[] = {7, 5};
    const lr_selection bad = {.lors = falling, .num_lors = 2};
    const lr_selection none = {.lors = falling, .num_lors = 0};
    const lr_selection one = {.lors = falling + 1, .num_lors = 1};
    float *image = random_floats(bench, bench->num_voxels), values[2] = {1.0f, NAN};
    assert_int_equal(array_forward_part(bench->op, &bad, image, values), LR_USAGE);
    assert_int_equal(array_back_part(bench->op, &bad, values, image), LR_USAGE);
    assert_int_equal(array_sensitivity_part(bench->op, &bad, image), LR_USAGE);
    assert_int_equal(array_forward_part(bench->op, &none, image, NULL), LR_OK);
    assert_int_equal(array_forward_part(bench->op, &one, NULL, values), LR_USAGE);
    assert_int_equal(array_back_part(bench->op, &one, NULL, image), LR_USAGE);
    assert_int_equal(array_sensitivity_part(bench->op, &one, NULL), LR_USAGE);
    assert_int_equal(array_back_part(bench->op, &one, values + 1, image), LR_BAD_INPUT);
    expect_words(bench, "LOR 5 ");
    assert_int_equal(array_back_part(bench->op, &none, NULL, image), LR_OK);
    for (int64_t v = 0; v < bench->num_voxels; v++) {
        assert_true(image[v] == 0.0f);
        image[v] = 1.0f;
    }
    assert_int_equal(array_sensitivity_part(bench->op, &none, image), LR_OK);
    for (int64_t v = 0; v < bench->num_voxels; v++) assert_true(image[v] == 0.0f);
    assert_true(lr_operator_device_seconds(bench->op) >= 0.0);
    free(image);
}

static void test_faults_and_empty_parts(void **state)
{
    for_all(*state, check_faults);
}

int main(int argc, char **argv)
{
    const char *backend = argc > 1 ? argv[1] : "cpu";
    const struct kind *kind = NULL;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        kind = strcmp(kinds[k].backend, backend) == 0 ? &kinds[k] : kind;
    const bool is_stranger =
        kind != NULL && kind->backend != NULL && (strstr(backend, "fake") != NULL || strcmp(backend, "poison") == 0);
    if (kind == NULL || (!is_stranger && !fixture_backend_is_usable(backend))) return kind == NULL ? 1 : 77;
    void *given = (void *)(uintptr_t)kind;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_parts_are_parts, given),
        cmocka_unit_test_prestate(test_subsets_sum_to_the_whole, given),
        cmocka_unit_test_prestate(test_factors_are_a_diagonal, given),
        cmocka_unit_test_prestate(test_factors_are_kept, given),
        cmocka_unit_test_prestate(test_rows_have_factors, given),
        cmocka_unit_test_prestate(test_bad_factors_are_named, given),
        cmocka_unit_test_prestate(test_faults_and_empty_parts, given),
    };
    if (strcmp(backend, "cpu") == 0) { /* the facade's work, whatever the backend */
        const struct CMUnitTest large[] = {cmocka_unit_test_prestate(test_sensitivity_goes_by_windows, given)};
        const int failures = cmocka_run_group_tests_name("large", large, NULL, NULL);
        return failures + cmocka_run_group_tests_name(backend, tests, NULL, NULL);
    }
    return cmocka_run_group_tests_name(backend, tests, NULL, NULL);
}
