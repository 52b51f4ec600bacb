/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Lists of LORs on the compute backend: what projections of a few LORs owe to those of all, and
 * that sums added in any order have the same bits every time. */
#include "stage.h"

#include "correspondence/values.h"

/* Forward, the same elements summed in two orders; back, elements whose cells' edges are reached in
 * two ways in float. Over the largest value. */
static const double forward_rounding = 1e-6, back_rounding = 2e-6;

struct question {
    const char *scanner;
    lr_mode mode;
    int rays;
    int samples[3];
    int64_t max_memory_bytes;
    bool deterministic;
};

struct bench {
    struct test_log log;
    lr_scanner *scanner;
    lr_lors *lors;
    lr_grid grid;
    lr_operator *op;
    int64_t num_voxels;
    uint64_t *state;
};

static bool bench_open(struct bench *bench, const struct question *question)
{
    bench->lors = lr_lors_create(bench->scanner, NULL);
    assert_non_null(bench->lors);
    bench->num_voxels = lr_grid_num_voxels(&bench->grid);
    test_log_init(&bench->log);
    bench->op = lr_operator_create(
        &(lr_operator_params){.lors = bench->lors,
                              .grid = &bench->grid,
                              .backend = "compute",
                              .mode = question->mode,
                              .rays = question->rays,
                              .samples = {question->samples[0], question->samples[1], question->samples[2]},
                              .deterministic = question->deterministic,
                              .store = LR_STORE_NO,
                              .max_memory_bytes = question->max_memory_bytes,
                              .log = &bench->log.log});
    if (bench->op == NULL && bench->log.status != LR_NO_DEVICE) fail_msg("%s", bench->log.error);
    return bench->op != NULL;
}

static void bench_finish(struct bench *bench)
{
    lr_operator_destroy(bench->op);
    lr_lors_destroy(bench->lors);
    lr_scanner_destroy(bench->scanner);
}

static void bench_init(struct bench *bench, const struct question *question, uint64_t *state)
{
    const struct scanner_case *at = scanner_case_named(question->scanner);
    const double step = at->reach_mm / 4;
    *bench = (struct bench){.scanner = at->create(), .state = state};
    bench->grid = lr_grid_centred((const int[3]){5, 4, 6}, (const double[3]){step, step, 3});
    bench->grid.origin_mm[0] += 0.31;
    bench->grid.origin_mm[1] -= 0.17;
    bench->grid.origin_mm[2] += 0.23;
    if (!bench_open(bench, question)) {
        bench_finish(bench);
        skip();
    }
}

static float *random_floats(uint64_t *state, int64_t count)
{
    float *values = test_alloc(count, sizeof(*values));
    for (int64_t k = 0; k < count; k++) values[k] = (float)random_between(state, -0.5, 1.5);
    return values;
}

static double largest_of(const float *values, int64_t count)
{
    double largest = 0.0;
    for (int64_t k = 0; k < count; k++) largest = fmax(largest, fabs((double)values[k]));
    return largest;
}

/* Two sets of values. */
struct compared {
    const char *what;
    const float *found, *expected;
    int64_t count;
};

static void assert_same(const struct compared *c, double rounding)
{
    const char *what = c->what;
    const float *found = c->found, *expected = c->expected;
    const int64_t count = c->count;
    const double largest = largest_of(expected, count);
    for (int64_t k = 0; k < count; k++) {
        const double gap = fabs((double)found[k] - (double)expected[k]);
        if (!(gap <= rounding * largest)) {
            fail_msg("%s: value %lld is %.9g, expected %.9g, the largest %.9g", what, (long long)k, (double)found[k],
                     (double)expected[k], largest);
        }
    }
}

static double dot(const float *a, const float *b, int64_t count)
{
    double sum = 0.0;
    for (int64_t k = 0; k < count; k++) sum += (double)a[k] * (double)b[k];
    return sum;
}

/* About a share of all LORs, the first and the last among them. */
static lr_selection choose(const struct bench *bench, double share)
{
    const int64_t count = bench->lors->count;
    int64_t *lors = test_alloc(count, sizeof(*lors));
    lr_selection part = {.lors = lors};
    for (int64_t lor = 0; lor < count; lor++)
        if (lor == 0 || lor == count - 1 || test_random(bench->state) < share) lors[part.num_lors++] = lor;
    return part;
}

static void chosen_free(const lr_selection *part)
{
    free((void *)(uintptr_t)part->lors);
}

/* --- a list is a pick --- */

static void check_forward(const struct bench *bench, const char *name, const lr_selection *part)
{
    float *image = random_floats(bench->state, bench->num_voxels);
    float *all = test_alloc(bench->lors->count, sizeof(*all));
    float *expected = test_alloc(part->num_lors, sizeof(*all));
    float *found = random_floats(bench->state, part->num_lors);
    assert_int_equal(array_forward(bench->op, image, all), LR_OK);
    assert_true(largest_of(all, bench->lors->count) > 0.0);
    for (int64_t k = 0; k < part->num_lors; k++) expected[k] = all[part->lors[k]];
    assert_int_equal(array_forward_part(bench->op, part, image, found), LR_OK);
    assert_true(lr_operator_device_seconds(bench->op) > 0.0); /* columns serve: this is no pick */
    assert_same(&(struct compared){name, found, expected, part->num_lors}, forward_rounding);
    assert_int_equal(array_forward_part(bench->op, part, image, expected), LR_OK);
    assert_memory_equal(found, expected, (size_t)part->num_lors * sizeof(*found));
    free(image);
    free(all);
    free(expected);
    free(found);
}

/* values NULL: the sensitivity. */
static void check_back(const struct bench *bench, const char *name, const lr_selection *part, const float *values)
{
    float *all = test_alloc(bench->lors->count, sizeof(*all));
    float *expected = test_alloc(bench->num_voxels, sizeof(*all));
    float *found = random_floats(bench->state, bench->num_voxels);
    for (int64_t k = 0; k < part->num_lors; k++) all[part->lors[k]] = values != NULL ? values[k] : 1.0f;
    assert_int_equal(array_back(bench->op, all, expected), LR_OK);
    assert_true(largest_of(expected, bench->num_voxels) > 0.0);
    for (int turn = 0; turn < 2; turn++) {
        const lr_status status = values != NULL ? array_back_part(bench->op, part, values, found)
                                                : array_sensitivity_part(bench->op, part, found);
        assert_int_equal(status, LR_OK);
        if (turn == 0) {
            assert_same(&(struct compared){name, found, expected, bench->num_voxels}, back_rounding);
            memcpy(expected, found, (size_t)bench->num_voxels * sizeof(*found));
        }
    }
    assert_memory_equal(found, expected, (size_t)bench->num_voxels * sizeof(*found));
    free(all);
    free(expected);
    free(found);
}

static void check_adjoint(const struct bench *bench, const lr_selection *part, const float *values)
{
    float *image = random_floats(bench->state, bench->num_voxels);
    float *ax = test_alloc(part->num_lors, sizeof(*ax));
    float *aty = test_alloc(bench->num_voxels, sizeof(*aty));
    assert_int_equal(array_forward_part(bench->op, part, image, ax), LR_OK);
    assert_int_equal(array_back_part(bench->op, part, values, aty), LR_OK);
    const double gap = fabs(dot(ax, values, part->num_lors) - dot(image, aty, bench->num_voxels));
    const double scale = sqrt(dot(ax, ax, part->num_lors) * dot(values, values, part->num_lors));
    assert_true(scale > 0.0 && gap <= 1e-6 * scale);
    free(image);
    free(ax);
    free(aty);
}

static void check_list(const struct bench *bench, const char *name, double share)
{
    const lr_selection part = choose(bench, share);
    float *values = random_floats(bench->state, part.num_lors);
    check_forward(bench, name, &part);
    check_back(bench, name, &part, values);
    check_back(bench, name, &part, NULL);
    check_adjoint(bench, &part, values);
    free(values);
    chosen_free(&part);
}

static void test_lists_are_picks(void **unused)
{
    (void)unused;
    static const char *const scanners[] = {"opposed", "oblique", "gapped", "flipped", "blocks", "ruled ring"};
    enum { NUM_MODES = 4 };
    static const struct question modes[NUM_MODES] = {
        {.mode = LR_MODE_EXACT, .samples = {1, 1, 1}},
        {.mode = LR_MODE_EXACT, .samples = {2, 1, 3}},
        {.mode = LR_MODE_SAMPLED, .rays = 2, .samples = {2, 1, 3}},
        {.mode = LR_MODE_SAMPLED, .rays = 3, .samples = {1, 1, 1}},
    };
    /* Each scanner and mode has programs of its own, which take seconds to compile: one mode a scanner. */
    const bool is_full = test_takes_all("three of four modes of each scanner");
    uint64_t state = test_seed();
    for (size_t s = 0; s < sizeof(scanners) / sizeof(scanners[0]); s++) {
        for (size_t m = is_full ? 0 : s % NUM_MODES; m < NUM_MODES; m += is_full ? 1 : NUM_MODES) {
            struct bench bench;
            struct question question = modes[m];
            question.scanner = scanners[s];
            bench_init(&bench, &question, &state);
            check_list(&bench, scanners[s], 500.0 / (double)bench.lors->count);
            bench_finish(&bench);
        }
    }
}

static void test_lists_go_by_windows(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    struct bench bench; /* a window holds 1023 of 6561 LORs */
    bench_init(&bench,
               &(struct question){
                   .scanner = "opposed", .mode = LR_MODE_EXACT, .samples = {1, 1, 1}, .max_memory_bytes = 16384},
               &state);
    check_list(&bench, "opposed", 0.7);
    bench_finish(&bench);
}

/* Modules whose u lies along the axis; tubes of more columns than one dispatch tries on llvmpipe. */
static void test_long_tubes(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    const lr_module shape = shape_of(3, 2, 4.3, 4.0);
    const lr_module modules[2] = {place_module(&shape, &(struct placement){5, 70, 0, 0, 0, 90}),
                                  place_module(&shape, &(struct placement){180, 70, 2, 0, 0, 90})};
    struct bench bench = {.scanner = scanner_of(modules, 2, 0), .state = &state};
    bench.grid = lr_grid_centred((const int[3]){60, 8, 20}, (const double[3]){2, 1.1, 0.7});
    if (!bench_open(&bench, &(struct question){.mode = LR_MODE_SAMPLED, .rays = 4, .samples = {2, 2, 2}})) {
        bench_finish(&bench);
        skip();
    }
    check_list(&bench, "long tubes", 0.3);
    bench_finish(&bench);
}

/* --- LORs out of coincidence --- */

static void test_out_of_coincidence_is_zero(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    struct bench bench;
    bench_init(&bench, &(struct question){"ruled ring", LR_MODE_EXACT, 0, {1, 1, 1}, 0, false}, &state);
    lr_selection part = choose(&bench, 0.05);
    int64_t *lors = (int64_t *)(uintptr_t)part.lors, kept = 0;
    for (int64_t k = 0; k < part.num_lors; k++)
        if (!lr_lors_in_coincidence(bench.lors, lors[k])) lors[kept++] = lors[k];
    part.num_lors = kept;
    assert_true(kept > 10);
    float *image = random_floats(&state, bench.num_voxels), *values = random_floats(&state, kept);
    assert_int_equal(array_forward_part(bench.op, &part, image, values), LR_OK);
    assert_true(largest_of(values, kept) == 0.0);
    assert_int_equal(array_sensitivity_part(bench.op, &part, image), LR_OK);
    assert_true(largest_of(image, bench.num_voxels) == 0.0);
    free(image);
    free(values);
    chosen_free(&part);
    bench_finish(&bench);
}

static void test_one_and_none(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    struct bench bench;
    bench_init(&bench, &(struct question){"opposed", LR_MODE_EXACT, 0, {1, 1, 1}, 0, false}, &state);
    int64_t lor = bench.lors->count / 2; /* of the two middle crystals */
    const lr_selection one = {.lors = &lor, .num_lors = 1}, none = {.lors = &lor};
    const float value = -3.0f;
    check_forward(&bench, "one", &one);
    check_back(&bench, "one", &one, &value);
    float *image = random_floats(&state, bench.num_voxels);
    assert_int_equal(array_forward_part(bench.op, &none, image, NULL), LR_OK);
    assert_int_equal(array_back_part(bench.op, &none, &value, image), LR_OK);
    assert_true(largest_of(image, bench.num_voxels) == 0.0);
    free(image);
    bench_finish(&bench);
}

/* --- fixed point --- */

/* Adds what each LOR alone gives, in double. */
static void sum_singles(const struct bench *bench, const lr_selection *part, const float *values, double *sums)
{
    float *image = test_alloc(bench->num_voxels, sizeof(*image));
    for (int64_t k = 0; k < part->num_lors; k++) {
        const lr_selection one = {.lors = part->lors + k, .num_lors = 1};
        assert_int_equal(array_sensitivity_part(bench->op, &one, image), LR_OK);
        for (int64_t v = 0; v < bench->num_voxels; v++) sums[v] += (double)values[k] * (double)image[v];
    }
    free(image);
}

/* Largest error of rounding a term to fixed point: values are at most 1 here (src/correspondence/values.h). */
static const double FIXED_STEP = 0x1p-61;

/* Values over six decades and one voxel seen by some of them only: every voxel is good to the
 * rounding of its elements, terms and sum in float, relative to itself. */
static void test_fixed_point_keeps_small_voxels(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    struct bench bench;
    bench_init(&bench, &(struct question){"opposed", LR_MODE_EXACT, 0, {1, 1, 1}, 0, false}, &state);
    const lr_selection part = choose(&bench, 100.0 / (double)bench.lors->count);
    float *values = test_alloc(part.num_lors, sizeof(*values));
    float *image = test_alloc(bench.num_voxels, sizeof(*image));
    double *sums = test_alloc(bench.num_voxels, sizeof(*sums));
    for (int64_t k = 0; k < part.num_lors; k++) values[k] = (float)pow(10.0, random_between(&state, -6, 0));
    assert_int_equal(array_back_part(bench.op, &part, values, image), LR_OK);
    sum_singles(&bench, &part, values, sums);
    int seen = 0;
    for (int64_t v = 0; v < bench.num_voxels; v++) {
        seen += sums[v] > 0.0;
        assert_true(fabs((double)image[v] - sums[v]) <= 3e-7 * sums[v] + (double)part.num_lors * FIXED_STEP);
    }
    assert_true(seen > 10);
    free(values);
    free(image);
    free(sums);
    chosen_free(&part);
    bench_finish(&bench);
}

/* One line through the middle of a large crystal, from half a millimetre above it, stands for far
 * more than the whole sphere: sums overflow, and are worked out with a larger exponent. */
static void test_overflow_is_worked_out_anew(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    const lr_module wide = shape_of(9, 1, 10.0, 10.0), small = shape_of(3, 3, 10.0, 10.0);
    lr_module modules[2] = {place_module(&wide, &(struct placement){0, 10, 0, 0, 0, 0}),
                            place_module(&small, &(struct placement){180, 10, 0, 0, 0, 0})};
    modules[1].centre_mm[1] = 40;
    struct bench bench = {.scanner = scanner_of(modules, 2, 0), .state = &state};
    bench.grid = lr_grid_centred((const int[3]){1, 1, 1}, (const double[3]){1, 1, 1});
    bench.grid.origin_mm[0] = 9.5;
    bench.grid.origin_mm[1] = 40;
    if (!bench_open(&bench, &(struct question){.mode = LR_MODE_SAMPLED, .rays = 1, .samples = {1, 1, 1}})) {
        bench_finish(&bench);
        skip();
    }
    float sensitivity;
    assert_int_equal(array_sensitivity(bench.op, &sensitivity), LR_OK);
    assert_true(sensitivity > 4.0f);
    check_list(&bench, "near a face", 0.5);
    const lr_selection part = choose(&bench, 1.0);
    check_back(&bench, "near a face", &part, NULL);
    chosen_free(&part);
    bench_finish(&bench);
}

/* Scanners that columns do not serve: tilted modules, and modules before others. */
static void test_deterministic_has_the_same_bits(void **unused)
{
    (void)unused;
    static const char *const scanners[] = {"tilted", "stacked"};
    uint64_t state = test_seed();
    for (int k = 0; k < 4; k++) {
        struct question question = {.scanner = scanners[k / 2],
                                    .mode = k % 2 ? LR_MODE_EXACT : LR_MODE_SAMPLED,
                                    .rays = k % 2 ? 0 : 2,
                                    .samples = {1, 1, 1},
                                    .max_memory_bytes = 65536};
        struct bench plain, fixed;
        bench_init(&plain, &question, &state);
        question.deterministic = true;
        bench_init(&fixed, &question, &state);
        float *image = random_floats(&state, plain.num_voxels);
        float *expected = test_alloc(plain.lors->count, sizeof(*expected));
        float *found = random_floats(&state, plain.lors->count);
        assert_int_equal(array_forward(plain.op, image, expected), LR_OK);
        assert_true(largest_of(expected, plain.lors->count) > 0.0);
        assert_int_equal(array_forward(fixed.op, image, found), LR_OK);
        assert_same(&(struct compared){question.scanner, found, expected, plain.lors->count}, 2e-6);
        assert_int_equal(array_forward(fixed.op, image, expected), LR_OK);
        assert_memory_equal(found, expected, (size_t)plain.lors->count * sizeof(*found));
        free(image);
        free(expected);
        free(found);
        bench_finish(&plain);
        bench_finish(&fixed);
    }
}

static void test_exponents(void **unused)
{
    (void)unused;
    assert_int_equal(lr_fixed_exponent((const float[]){0.0f, -0.0f}, 2), 0);
    assert_int_equal(lr_fixed_exponent((const float[]){0.75f, -1.0f}, 2), 1);
    assert_int_equal(lr_fixed_exponent((const float[]){-0.75f, 0.2f}, 2), 0);
    assert_int_equal(lr_fixed_exponent((const float[]){0x1p-149f}, 1), -148);
    assert_int_equal(lr_fixed_exponent((const float[]){0x1.fffffep127f}, 1), 128);
}

int main(void)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) return 77;
    stage_leave(ctx);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_are_picks),
        cmocka_unit_test(test_lists_go_by_windows),
        cmocka_unit_test(test_long_tubes),
        cmocka_unit_test(test_out_of_coincidence_is_zero),
        cmocka_unit_test(test_one_and_none),
        cmocka_unit_test(test_fixed_point_keeps_small_voxels),
        cmocka_unit_test(test_overflow_is_worked_out_anew),
        cmocka_unit_test(test_deterministic_has_the_same_bits),
        cmocka_unit_test(test_exponents),
    };
    return cmocka_run_group_tests_name("lists", tests, NULL, NULL);
}
