/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of the native backend against each other and against its own rows: parts of the LORs,
 * sensitivities, threads, windows of memory, columns along each axis of the grid. */
#include "fixtures.h"

#include "model/scanner/coincidence.h"
#include "native/turned.h"
#include "operator/backend.h"

enum { EXACT, SAMPLED, NUM_MODES };
static const lr_mode modes[NUM_MODES] = {LR_MODE_EXACT, LR_MODE_SAMPLED};

/* Some hundred floats are added: relative to the largest value. */
static const double rounding = 2e-6;

struct bench {
    lr_scanner *scanner;
    lr_lors *lors;
    lr_grid grid;
    struct lr_backend_params params;
    struct lr_backend backend;
    int64_t num_voxels, num_lors;
    float *image, *data; /* random, with some zeros */
};

static void fill(float *values, int64_t count, uint64_t *state)
{
    for (int64_t k = 0; k < count; k++) {
        const double value = random_between(state, -0.5, 1);
        values[k] = value > 0 ? (float)value : 0.0f;
    }
}

static float *make_floats(int64_t count)
{
    float *values = kept_floats(count);
    memset(values, -1, (size_t)count * sizeof(*values)); /* overwritten, or the test sees it */
    return values;
}

static void bench_open(struct bench *bench)
{
    if (bench->backend.fns != NULL) {
        bench->backend.fns->destroy(bench->backend.self);
        bench->backend.fns = NULL;
    }
    assert_ok(lr_native_backend_create(&bench->params, &bench->backend));
}

static void bench_init(struct bench *bench, lr_scanner *scanner, lr_mode mode)
{
    uint64_t state = test_seed();
    *bench = (struct bench){.scanner = scanner, .lors = keep(lr_lors_create(scanner, NULL))};
    assert_non_null(bench->lors);
    bench->grid = lr_grid_centred((const int[3]){7, 6, 5}, (const double[3]){2.3, 2.9, 2.6});
    bench->grid.origin_mm[0] += 0.37;
    bench->grid.origin_mm[2] -= 0.29;
    bench->params = (struct lr_backend_params){.scanner = scanner,
                                               .lors = bench->lors,
                                               .grid = &bench->grid,
                                               .mode = mode,
                                               .rays = 3,
                                               .samples = {2, 1, 3},
                                               .threads = 2};
    bench->num_voxels = lr_grid_num_voxels(&bench->grid);
    bench->num_lors = bench->lors->count;
    bench->image = make_floats(bench->num_voxels);
    bench->data = make_floats(bench->num_lors);
    fill(bench->image, bench->num_voxels, &state);
    fill(bench->data, bench->num_lors, &state);
    bench_open(bench);
}

static void bench_finish(struct bench *bench)
{
    bench->backend.fns->destroy(bench->backend.self);
    lr_lors_destroy(bench->lors);
    lr_scanner_destroy(bench->scanner);
}

/* part NULL: all LORs. */
static int64_t num_values(const struct bench *bench, const lr_selection *part)
{
    const int64_t *offsets = bench->lors->offsets;
    if (part == NULL || part->lors != NULL) return part != NULL ? part->num_lors : bench->num_lors;
    int64_t count = 0;
    for (int64_t k = 0; k < part->num_pairs; k++) count += offsets[part->pairs[k] + 1] - offsets[part->pairs[k]];
    return count;
}

static float *forward(const struct bench *bench, const lr_selection *part)
{
    const int64_t count = num_values(bench, part);
    float *values = make_floats(count);
    const lr_vector x = lr_vector_of_floats(bench->image, bench->num_voxels);
    lr_vector y = lr_vector_of_floats(values, count);
    assert_ok(bench->backend.fns->forward(bench->backend.self, part, &x, &y));
    return values;
}

/* values NULL: 1. */
static float *back(const struct bench *bench, const lr_selection *part, const float *values)
{
    float *image = make_floats(bench->num_voxels);
    const lr_vector y = lr_vector_of_floats(values, num_values(bench, part));
    lr_vector x = lr_vector_of_floats(image, bench->num_voxels);
    assert_ok(bench->backend.fns->back(bench->backend.self, part, values != NULL ? &y : NULL, &x));
    return image;
}

static void assert_same_bits(const float *a, const float *b, int64_t count)
{
    assert_memory_equal(a, b, (size_t)count * sizeof(*a));
}

static void assert_near(const float *a, const float *b, int64_t count)
{
    double largest = 0, worst = 0;
    for (int64_t k = 0; k < count; k++) {
        largest = fmax(largest, fabs((double)a[k]));
        worst = fmax(worst, fabs((double)a[k] - (double)b[k]));
    }
    assert_true(largest > 0);
    if (!(worst <= rounding * largest)) fail_msg("differ by %g of the largest", worst / largest);
}

typedef void law(struct bench *bench);

static lr_scanner *(*const kinds[])(void) = {
    create_opposed, create_flipped, create_ring_of_8, create_two_rings, create_blocks, create_ruled_ring, create_turned,
};
enum { NUM_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void for_all(law *check)
{
    for (int kind = 0; kind < NUM_KINDS; kind++) {
        for (int mode = 0; mode < NUM_MODES; mode++) {
            struct bench bench;
            bench_init(&bench, kinds[kind](), modes[mode]);
            check(&bench);
            bench_finish(&bench);
        }
    }
}

/* --- rows --- */

struct sums {
    const struct bench *bench;
    double *data;  /* A x */
    double *image; /* A^T y */
    double *ones;  /* A^T 1 */
};

static lr_status take_row(void *user, const lr_row *row)
{
    struct sums *sums = user;
    for (int64_t k = 0; k < row->count; k++) {
        assert_true(row->probability[k] > 0 && (k == 0 || row->lor[k] > row->lor[k - 1]));
        sums->data[row->lor[k]] += row->probability[k] * (double)sums->bench->image[row->row];
        sums->image[row->row] += row->probability[k] * (double)sums->bench->data[row->lor[k]];
        sums->ones[row->row] += row->probability[k];
    }
    return LR_OK;
}

static void assert_near_sums(const float *found, const double *sums, int64_t count)
{
    float *expected = make_floats(count);
    for (int64_t k = 0; k < count; k++) expected[k] = (float)sums[k];
    assert_near(expected, found, count);
}

/* Every pair of modules, as a selection. */
static lr_selection all_pairs(const struct bench *bench)
{
    int32_t *pairs = kept(bench->lors->num_pairs, sizeof(*pairs));
    for (int64_t k = 0; k < bench->lors->num_pairs; k++) pairs[k] = (int32_t)k;
    return (lr_selection){.pairs = pairs, .num_pairs = bench->lors->num_pairs};
}

static void check_rows(struct bench *bench)
{
    struct sums sums = {.bench = bench};
    sums.data = kept_doubles(bench->num_lors);
    sums.image = kept_doubles(bench->num_voxels);
    sums.ones = kept_doubles(bench->num_voxels);
    const struct lr_rows rows = {.grid = &bench->grid, .samples = {2, 1, 3}, .end = bench->num_voxels};
    const lr_row_sink sink = {take_row, &sums};
    assert_ok(bench->backend.fns->rows(bench->backend.self, &rows, &sink));
    const lr_selection all = all_pairs(bench);
    float *data = forward(bench, NULL), *image = back(bench, NULL, bench->data);
    float *ones = back(bench, &all, NULL);
    assert_near_sums(data, sums.data, bench->num_lors);
    assert_near_sums(image, sums.image, bench->num_voxels);
    assert_near_sums(ones, sums.ones, bench->num_voxels);
}

static void test_projections_are_sums_of_rows(void **unused)
{
    for_all(check_rows);
}

/* --- parts --- */

/* Every third pair, so that their values do not follow each other in the data. */
static void check_pairs(struct bench *bench)
{
    lr_selection part = all_pairs(bench);
    int32_t *pairs = (int32_t *)(uintptr_t)part.pairs;
    part.num_pairs = 0;
    for (int32_t k = 0; k < bench->lors->num_pairs; k += 3) pairs[part.num_pairs++] = k;
    float *all = forward(bench, NULL), *some = forward(bench, &part);
    float *picked = make_floats(bench->num_lors), *others = make_floats(bench->num_lors);
    int64_t next = 0;
    memset(others, 0, (size_t)bench->num_lors * sizeof(float));
    for (int64_t k = 0; k < part.num_pairs; k++) {
        for (int64_t l = bench->lors->offsets[pairs[k]]; l < bench->lors->offsets[pairs[k] + 1]; l++) {
            assert_true(some[next] == all[l]);
            picked[next++] = bench->data[l];
            others[l] = bench->data[l];
        }
    }
    assert_int_equal(next, num_values(bench, &part));
    float *image = back(bench, &part, picked), *expected = back(bench, NULL, others);
    assert_same_bits(image, expected, bench->num_voxels);
}

static void test_parts_by_pairs(void **unused)
{
    for_all(check_pairs);
}

/* A third of all LORs, picked one by one. */
static void check_lors(struct bench *bench)
{
    uint64_t state = 5;
    int64_t *numbers = kept(bench->num_lors, sizeof(*numbers));
    lr_selection part = {.lors = numbers};
    float *all = forward(bench, NULL), *picked = make_floats(bench->num_lors);
    float *ones = make_floats(bench->num_lors), *others = make_floats(bench->num_lors);
    memset(others, 0, (size_t)bench->num_lors * sizeof(float));
    for (int64_t l = 0; l < bench->num_lors; l++) {
        if (test_random(&state) < 0.33) {
            ones[part.num_lors] = 1.0f;
            picked[part.num_lors] = others[l] = bench->data[l];
            numbers[part.num_lors++] = l;
        }
    }
    float *some = forward(bench, &part);
    for (int64_t k = 0; k < part.num_lors; k++)
        assert_true(some[k] == all[numbers[k]]); /* the same additions, in the same order */
    float *image = back(bench, &part, picked), *expected = back(bench, NULL, others);
    assert_near(expected, image, bench->num_voxels);
    float *sensitivity = back(bench, &part, NULL), *by_ones = back(bench, &part, ones);
    assert_same_bits(sensitivity, by_ones, bench->num_voxels);
}

static void test_parts_by_lors(void **unused)
{
    for_all(check_lors);
}

/* --- same bits --- */

static void check_threads(struct bench *bench)
{
    const int64_t first[] = {3, 17, 40, bench->num_lors / 2, bench->num_lors - 1};
    const lr_selection part = {.lors = first, .num_lors = 5};
    float *data = forward(bench, NULL), *image = back(bench, NULL, data);
    float *some = forward(bench, &part), *few = back(bench, &part, some);
    for (int n = 0; n < 4; n++) {
        static const int threads[] = {1, 2, 3, 7};
        bench->params.threads = threads[n];
        bench->params.max_memory_bytes = n == 1 ? 1 : 0; /* a window for every pair */
        bench_open(bench);
        float *data2 = forward(bench, NULL), *image2 = back(bench, NULL, data);
        float *some2 = forward(bench, &part), *few2 = back(bench, &part, some);
        assert_same_bits(data, data2, bench->num_lors);
        assert_same_bits(image, image2, bench->num_voxels);
        assert_same_bits(some, some2, 5);
        assert_same_bits(few, few2, bench->num_voxels);
    }
}

static void test_same_bits(void **unused)
{
    for_all(check_threads);
}

/* --- orientation --- */

/* The scanner with x, y, z renamed to y, z, x, `times` times. */
static lr_scanner *turn_scanner(const lr_scanner *scanner, int times)
{
    lr_module modules[8];
    for (int m = 0; m < scanner->num_modules; m++) {
        modules[m] = scanner->modules[m];
        for (int k = 0; k < 3; k++) {
            const int from = (k + times) % 3;
            modules[m].centre_mm[k] = scanner->modules[m].centre_mm[from];
            modules[m].u[k] = scanner->modules[m].u[from];
            modules[m].v[k] = scanner->modules[m].v[from];
        }
    }
    struct test_log log;
    test_log_init(&log);
    lr_scanner *turned = lr_scanner_create(
        &(lr_scanner_params){.modules = modules, .num_modules = scanner->num_modules, .log = &log.log});
    if (turned == NULL) fail_msg("the turned scanner is refused: %s", log.error);
    return turned;
}

/* Two facing modules along each axis of the grid give the same values: normals point inwards in
 * every turn, so that only the grid's order changes. */
static void test_columns_along_each_axis(void **unused)
{
    const lr_module shape = {.crystals = {5, 4}, .pitch_mm = {2.2, 2.6}, .face_mm = {2.1, 2.4}, .depth_mm = 5};
    const lr_module modules[2] = {place_module(&shape, &(struct placement){0, 30, 1, 0, 0, 0}),
                                  place_module(&shape, &(struct placement){180, 30, -1, 0, 0, 0})};
    float *first = NULL;
    for (int times = 0; times < 3; times++) {
        struct bench bench;
        lr_scanner *scanner = scanner_of(modules, 2, 0);
        bench_init(&bench, turn_scanner(scanner, times), LR_MODE_EXACT);
        lr_scanner_destroy(scanner);
        const lr_grid grid = bench.grid;
        float *image = make_floats(bench.num_voxels);
        memcpy(image, bench.image, (size_t)bench.num_voxels * sizeof(float));
        for (int k = 0; k < 3; k++) {
            bench.grid.size[k] = grid.size[(k + times) % 3];
            bench.grid.voxel_mm[k] = grid.voxel_mm[(k + times) % 3];
            bench.grid.origin_mm[k] = grid.origin_mm[(k + times) % 3];
            bench.params.samples[k] = (const int[3]){2, 1, 3}[(k + times) % 3];
        }
        for (int64_t v = 0; v < bench.num_voxels; v++) {
            const int at[3] = {(int)(v % grid.size[0]), (int)(v / grid.size[0] % grid.size[1]),
                               (int)(v / grid.size[0] / grid.size[1])};
            const int *size = bench.grid.size;
            bench.image[at[times % 3] + size[0] * (at[(1 + times) % 3] + (int64_t)size[1] * at[(2 + times) % 3])] =
                image[v];
        }
        bench_open(&bench);
        float *data = forward(&bench, NULL);
        if (first == NULL)
            first = data;
        else
            assert_near(first, data, bench.num_lors);
        bench_finish(&bench);
    }
}

/* --- coincidence --- */

static void check_coincidence(struct bench *bench, uint32_t kind)
{
    float *data = forward(bench, NULL);
    int64_t num_out = 0, num_seen = 0, num_kind = 0;
    for (int64_t l = 0; l < bench->num_lors; l++) {
        const bool counts = lr_lors_in_coincidence(bench->lors, l);
        assert_true(counts || data[l] == 0);
        num_out += !counts;
        num_seen += data[l] > 0;
    }
    for (int64_t k = 0; k < bench->lors->num_pairs; k++) num_kind += bench->lors->masks->pairs[k].kind == kind;
    assert_true(num_out > 0 && num_seen > 0 && num_kind > 0);
}

static void test_nothing_out_of_coincidence(void **unused)
{
    for (int mode = 0; mode < NUM_MODES; mode++) {
        struct bench bench;
        bench_init(&bench, create_ruled_ring(), modes[mode]);
        check_coincidence(&bench, LR_MASK_SEPARABLE);
        bench_finish(&bench);
        bench_init(&bench, create_turned(), modes[mode]);
        check_coincidence(&bench, LR_MASK_FULL);
        bench_finish(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(test_projections_are_sums_of_rows),
                                       CASE(test_parts_by_pairs),
                                       CASE(test_parts_by_lors),
                                       CASE(test_same_bits),
                                       CASE(test_columns_along_each_axis),
                                       CASE(test_nothing_out_of_coincidence)};
    return cmocka_run_group_tests_name("native_projections", tests, NULL, NULL);
}
