/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Operators of the family `listmode` on a small ring, for the backend that argv[1] names. The sensitivity is compared
 * with a sum over every LOR, and reconstructions of events with reconstructions of counts. Factors are tested, too. */
#include "operators.h"
#include "unit/scanners.h"

#include <lr/recon.h>

enum { ITERATIONS = 5, MOST_COUNTS = 3 };

static const char *backend;
static lr_scanner *scanner;
static lr_lors *lors;
static lr_grid grid;
static lr_event *all_lines; /* [num_lines] an event for each LOR in coincidence, */
static int64_t *lor_of;     /* and which it is */
static int64_t num_lines;

static void open_scanner(lr_scanner *opened)
{
    scanner = opened;
    lors = lr_lors_create(scanner, NULL);
    num_lines = 0;
    grid = lr_grid_centred((const int[3]){14, 13, 5}, (const double[3]){4, 4, 3});
    all_lines = calloc((size_t)lors->count, sizeof(*all_lines));
    lor_of = calloc((size_t)lors->count, sizeof(*lor_of));
    assert_true(all_lines != NULL && lor_of != NULL);
    for (int64_t lor = 0; lor < lors->count; lor++) {
        if (lr_lors_in_coincidence(lors, lor)) {
            lor_of[num_lines] = lor;
            all_lines[num_lines++] = event_of(lors, lor, false);
        }
    }
}

static void close_scanner(void)
{
    free(all_lines);
    free(lor_of);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

static int setup(void **state)
{
    open_scanner(decagon());
    return 0;
}

static int teardown(void **state)
{
    close_scanner();
    return 0;
}

/* Memory limit of a device: LR_TEST_MEMORY_BYTES, or 0 for none. */
static int64_t most_bytes(void)
{
    const char *const bytes = getenv("LR_TEST_MEMORY_BYTES");
    return bytes != NULL ? atoll(bytes) : 0;
}

static lr_listmode_params params_of(const lr_event *events, int64_t count)
{
    return (lr_listmode_params){.max_memory_bytes = most_bytes(),
                                .lors = lors,
                                .grid = &grid,
                                .events = events,
                                .count = count,
                                .tube = {.fwhm_mm = 5},
                                .backend = backend,
                                .threads = 2,
                                .log = &test_log.log};
}

static double *sensitivity_of(lr_operator *op, const lr_selection *part)
{
    const int64_t count = lr_grid_num_voxels(&grid);
    double *values = case_doubles(count);
    lr_vector image = lr_vector_of_doubles(values, count);
    assert_int_equal(lr_operator_sensitivity(op, part, &image), LR_OK);
    return values;
}

/* --- factors and sensitivity --- */

/* A factor from 0.5 to 1.5. */
static float factor_of(int64_t lor)
{
    return 0.5f + (float)(lor * 7919 % 1000) * 1e-3f;
}

static lr_status get_factors(void *user, const lr_lor_span *span, float *values)
{
    (void)user;
    for (int64_t k = 0; k < span->count; k++) {
        if (span->numbers != NULL && k > 0) assert_true(span->numbers[k] > span->numbers[k - 1]);
        values[k] = factor_of(span->numbers != NULL ? span->numbers[k] : span->first + k);
    }
    return LR_OK;
}

static const lr_lor_source factors = {get_factors, NULL};

/* A^T n by the operator whose events are all LORs. */
static double *back_of_all(bool with_factors)
{
    const lr_listmode_params params = params_of(all_lines, num_lines);
    lr_operator *op = open_operator(&params);
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    double *ones = case_doubles(num_lines), *image = case_doubles(num_voxels);
    for (int64_t k = 0; k < num_lines; k++) ones[k] = with_factors ? factor_of(lor_of[k]) : 1.0;
    const lr_vector values = lr_vector_of_doubles(ones, num_lines);
    lr_vector to = lr_vector_of_doubles(image, num_voxels);
    assert_int_equal(lr_operator_back(op, NULL, &values, &to), LR_OK);
    lr_operator_destroy(op);
    free(ones);
    return image;
}

static void check_sensitivity(bool with_factors)
{
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    lr_listmode_params params = params_of(all_lines, 100);
    params.num_ranges = 4;
    params.factors = with_factors ? &factors : NULL;
    lr_operator *op = open_operator(&params);
    const int32_t ranges[3] = {0, 1, 3};
    double *whole = sensitivity_of(op, NULL), *expected = back_of_all(with_factors);
    double *part = sensitivity_of(op, &(lr_selection){.pairs = ranges, .num_pairs = 3});
    assert_true(case_difference(whole, expected, num_voxels) < 1e-6);
    for (int64_t v = 0; v < num_voxels; v++) assert_close(part[v], 0.75 * whole[v], 1e-6);
    assert_int_equal(lr_listmode_get_info(op)->sensitivity_lines, lors->count);
    assert_true(lr_listmode_get_info(op)->sensitivity_error == 0);
    free(whole);
    free(part);
    free(expected);
    lr_operator_destroy(op);
}

static void test_it_is_that_of_every_lor(void **state)
{
    check_sensitivity(false);
    check_sensitivity(true);
}

/* Sensitivity of a sample of the LORs, or of one of several parts of the sample. */
static double *sample_by(const char *name, int part, int parts)
{
    lr_listmode_params params = params_of(all_lines, 100);
    params.backend = name;
    params.sensitivity_lines = lors->count / 3;
    params.seed = 5;
    params.sensitivity_part = part;
    params.sensitivity_parts = parts;
    lr_operator *op = open_operator(&params);
    double *found = sensitivity_of(op, NULL);
    lr_operator_destroy(op);
    return found;
}

/* A backend may draw lines itself: they are those that native has. */
static void check_sample(void)
{
    enum { PARTS = 3 };
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    double *expected = sample_by("native", 0, 1), *whole = sample_by(backend, 0, 1);
    double *sum = case_doubles(num_voxels);
    for (int part = 0; part < PARTS; part++) {
        double *found = sample_by(backend, part, PARTS);
        for (int64_t v = 0; v < num_voxels; v++) sum[v] += found[v];
        free(found);
    }
    assert_true(case_difference(whole, expected, num_voxels) < 1e-6);
    assert_true(case_difference(sum, expected, num_voxels) < 1e-6);
    free(expected);
    free(whole);
    free(sum);
}

/* Six modules that lean: which of their crystals are in coincidence has nothing to do with rows and columns. */
static lr_scanner *leaning(void)
{
    lr_module modules[6];
    for (int m = 0; m < 6; m++) {
        const double angle = m * acos(-1.0) / 3;
        modules[m] = tilted_module(60 * cos(angle), 60 * sin(angle), 0, m * 60.0, 10, 5, 4);
    }
    return lr_scanner_create(
        &(lr_scanner_params){.modules = modules, .num_modules = 6, .coincidence = {.field_of_view_mm = 11}});
}

#ifdef LR_TEST_FAKE_LISTMODE
extern int fake_lines_drawn; /* by the device that tests have */

/* Checks that a device draws lines if it has the memory for them. */
static void expect_drawn(int before)
{
    assert_int_equal(fake_lines_drawn > before, most_bytes() == 0);
}
#endif

/* Rules that leave all crystal pairs of two modules, or those of some rows and columns, or any. */
static void test_lors_out_of_coincidence_are_left_out(void **state)
{
    static const lr_coincidence rules[] = {
        {.min_module_difference = 3},
        {.min_module_difference = 3, .limits_ring_difference = true, .max_ring_difference = 1},
        {.field_of_view_mm = 70},
        {.field_of_view_mm = 70, .limits_ring_difference = true, .max_ring_difference = 1}};
    enum { RULES = sizeof(rules) / sizeof(rules[0]) };
    for (int k = 0; k <= RULES; k++) {
        close_scanner();
        open_scanner(k < RULES ? decagon_by(&rules[k]) : leaning());
        assert_true(num_lines > 0 && (num_lines < lors->count) == (k > 0));
#ifdef LR_TEST_FAKE_LISTMODE
        const int before = fake_lines_drawn;
        check_sensitivity(false);
        expect_drawn(before);
#else
        check_sensitivity(false);
#endif
        check_sample();
    }
    close_scanner();
    open_scanner(decagon());
}

/* The mean over seeds tends to all LORs, and each is off by what it says. */
static void test_samples_are_not_biased(void **state)
{
    enum { SEEDS = 60 };
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    double *expected = back_of_all(true), *mean = case_doubles(num_voxels), level = 0, said = 0, off = 0;
    for (int64_t v = 0; v < num_voxels; v++) level += expected[v] / (double)num_voxels;
    for (int seed = 0; seed < SEEDS; seed++) {
        lr_listmode_params params = params_of(all_lines, 100);
        params.factors = &factors;
        params.sensitivity_lines = lors->count / 5;
        params.seed = (uint64_t)seed;
        lr_operator *op = open_operator(&params);
        double *found = sensitivity_of(op, NULL), gap = 0;
        for (int64_t v = 0; v < num_voxels; v++) {
            mean[v] += found[v] / SEEDS;
            gap += (found[v] - expected[v]) * (found[v] - expected[v]) / (double)num_voxels;
        }
        said += lr_listmode_get_info(op)->sensitivity_error / SEEDS;
        off += sqrt(gap) / level / SEEDS;
        free(found);
        lr_operator_destroy(op);
    }
    double gap = 0;
    for (int64_t v = 0; v < num_voxels; v++)
        gap += (mean[v] - expected[v]) * (mean[v] - expected[v]) / (double)num_voxels;
    print_message("a sample says %.3g, and is off by %.3g; their mean by %.3g\n", said, off, sqrt(gap) / level);
    assert_true(said > 0.7 * off && said < 1.6 * off);
    assert_true(sqrt(gap) / level < 1.5 * off / sqrt(SEEDS));
    free(expected);
    free(mean);
}

static void test_rows_have_their_factors(void **state)
{
    enum { COUNT = 500 };
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    lr_event *events = calloc(COUNT, sizeof(*events));
    int64_t lor[COUNT];
    double *x = case_doubles(num_voxels), without[COUNT], with[COUNT];
    uint64_t seed = 11;
    for (int k = 0; k < COUNT; k++) {
        const int64_t line = (int64_t)(test_random(&seed) * (double)num_lines);
        events[k] = all_lines[line];
        lor[k] = lor_of[line];
    }
    for (int64_t v = 0; v < num_voxels; v++) x[v] = test_random(&seed);
    const lr_vector image = lr_vector_of_doubles(x, num_voxels);
    for (int pass = 0; pass < 2; pass++) {
        lr_listmode_params params = params_of(events, COUNT);
        params.factors = pass > 0 ? &factors : NULL;
        lr_operator *op = open_operator(&params);
        lr_vector to = lr_vector_of_doubles(pass > 0 ? with : without, COUNT);
        assert_int_equal(lr_operator_forward(op, NULL, &image, &to), LR_OK);
        lr_operator_destroy(op);
    }
    for (int k = 0; k < COUNT; k++) assert_close(with[k], factor_of(lor[k]) * without[k], 1e-6);
    free(events);
    free(x);
}

/* --- reconstruction --- */

struct course {
    double likelihood[ITERATIONS], measured[ITERATIONS], sensitive[ITERATIONS];
};

static lr_status note(void *user, const lr_iteration *done)
{
    struct course *course = user;
    course->likelihood[done->number - 1] = done->log_likelihood;
    course->measured[done->number - 1] = done->measured_counts;
    course->sensitive[done->number - 1] = done->sensitive_counts;
    return LR_OK;
}

static void reconstruct(lr_operator *op, const float *counts, int subsets, struct course *course, double *image)
{
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    const lr_vector data = lr_vector_of_floats(counts, lr_operator_get_info(op)->num_lors);
    lr_vector to = lr_vector_of_doubles(image, num_voxels);
    assert_int_equal(lr_recon(&(lr_recon_params){.op = op,
                                                 .data = &data,
                                                 .iterations = ITERATIONS,
                                                 .subsets = subsets,
                                                 .iteration = note,
                                                 .user = course,
                                                 .log = &test_log.log},
                              &to),
                     LR_OK);
}

/* Counts of every line, and the same as events one by one. */
static int64_t draw_counts(float *counts, lr_event *events)
{
    uint64_t seed = 5;
    int64_t count = 0;
    for (int64_t k = 0; k < num_lines; k++) {
        counts[k] = (float)(int)(test_random(&seed) * (MOST_COUNTS + 1));
        for (int n = 0; n < (int)counts[k]; n++) events[count++] = all_lines[k];
    }
    return count;
}

static void test_events_give_the_image_of_their_counts(void **state)
{
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    float *counts = calloc((size_t)num_lines, sizeof(*counts));
    lr_event *events = calloc((size_t)(MOST_COUNTS * num_lines), sizeof(*events));
    float *ones = calloc((size_t)(MOST_COUNTS * num_lines), sizeof(*ones));
    double *of_counts = case_doubles(num_voxels), *of_events = case_doubles(num_voxels);
    const int64_t count = draw_counts(counts, events);
    for (int64_t k = 0; k < count; k++) ones[k] = 1;
    struct course binned, listed;
    lr_listmode_params params = params_of(all_lines, num_lines);
    lr_operator *op = open_operator(&params);
    reconstruct(op, counts, 1, &binned, of_counts);
    lr_operator_destroy(op);
    params = params_of(events, count);
    op = open_operator(&params);
    reconstruct(op, ones, 1, &listed, of_events);
    lr_operator_destroy(op);
    assert_true(case_difference(of_events, of_counts, num_voxels) < 1e-5);
    for (int n = 0; n < ITERATIONS; n++) {
        assert_true(n == 0 || listed.likelihood[n] > listed.likelihood[n - 1]);
        /* EM explains every event that the grid reaches. */
        assert_close(listed.sensitive[n], listed.measured[n], 1e-5);
        assert_true(listed.measured[n] == binned.measured[n]);
        assert_true(listed.measured[n] > 0.3 * (double)count);
        assert_true(listed.measured[n] < (double)count);
    }
    free(counts);
    free(events);
    free(ones);
    free(of_counts);
    free(of_events);
}

/* Nearer to where ML-EM goes than as many of its iterations are. */
static void test_subsets_are_ranges(void **state)
{
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    float *ones = calloc((size_t)num_lines, sizeof(*ones));
    lr_event *events = calloc((size_t)num_lines, sizeof(*events));
    double *image = case_doubles(num_voxels), *plain = case_doubles(num_voxels);
    uint64_t seed = 3;
    for (int64_t k = 0; k < num_lines; k++) {
        ones[k] = 1;
        events[k] = all_lines[(int64_t)(test_random(&seed) * (double)num_lines)];
    }
    struct course subsets, whole;
    lr_listmode_params params = params_of(events, num_lines);
    params.num_ranges = 4;
    lr_operator *op = open_operator(&params);
    reconstruct(op, ones, 4, &subsets, image);
    reconstruct(op, ones, 1, &whole, plain);
    assert_true(subsets.likelihood[ITERATIONS - 1] > whole.likelihood[ITERATIONS - 1]);
    const lr_vector data = lr_vector_of_floats(ones, num_lines);
    if (most_bytes() == 0) { /* else vectors are on the host */
        reconstruct_in_place(op, &(lr_recon_params){.data = &data, .iterations = ITERATIONS, .subsets = 4}, plain);
        assert_true(case_difference(plain, image, num_voxels) < 1e-5);
    }
    lr_vector to = lr_vector_of_doubles(image, num_voxels);
    assert_int_equal(lr_recon(&(lr_recon_params){.op = op, .data = &data, .subsets = 5, .log = &test_log.log}, &to),
                     LR_USAGE);
    assert_non_null(strstr(test_log.error, "5 subsets: they are made of ranges of events, of which "
                                           "there are 4"));
    lr_operator_destroy(op);
    free(ones);
    free(events);
    free(image);
    free(plain);
}

/* --- what is refused --- */

static void expect_refusal(const lr_listmode_params *params, lr_status status, const char *sentence)
{
    test_log_init(&test_log);
    assert_null(lr_listmode_create(params));
    if (test_log.status != status || strstr(test_log.error, sentence) == NULL)
        fail_msg("expected '%s', found '%s'", sentence, test_log.error);
}

static void test_mistakes_are_told(void **state)
{
    lr_listmode_params params = params_of(all_lines, 10);
    params.backend = "raster";
    expect_refusal(&params, LR_USAGE, "the family listmode has no backend \"raster\"");
    params = params_of(NULL, 10);
    expect_refusal(&params, LR_USAGE, "needs LORs, a grid and events");
    params = params_of(all_lines, 10);
    params.sensitivity_lines = -1;
    expect_refusal(&params, LR_USAGE, "must not be negative");
    /* Two crystals of one module have no LOR, and so no factor. */
    lr_event inside = {.crystals = {0, 1}, .weight = 1};
    params = params_of(&inside, 1);
    params.factors = &factors;
    expect_refusal(&params, LR_BAD_INPUT, "event 0 joins crystals 0 and 1, whose modules are not");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_that_of_every_lor),
        cmocka_unit_test(test_lors_out_of_coincidence_are_left_out),
        cmocka_unit_test(test_samples_are_not_biased),
        cmocka_unit_test(test_rows_have_their_factors),
        cmocka_unit_test(test_events_give_the_image_of_their_counts),
        cmocka_unit_test(test_subsets_are_ranges),
        cmocka_unit_test(test_mistakes_are_told),
    };
    backend = argc > 1 ? argv[1] : "cpu";
    if (lacks_device(backend)) return 77;
    return cmocka_run_group_tests(tests, setup, teardown);
}
