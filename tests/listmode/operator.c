/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Operators of the family `listmode` on a small ring, for the backend that argv[1] names. The sensitivity is compared
 * with a sum over every LOR, and reconstructions of events with reconstructions of counts. Factors are tested, too. */
#include "listmode/cases.h"
#include "unit/scanners.h"

enum { ITERATIONS = 5, MOST_COUNTS = 3 };

static lr_lors *lors;
static lr_grid grid;
static lr_event *all_lines; /* [num_lines] an event on each LOR in coincidence */
static int64_t *lor_of;     /* [num_lines] number of this LOR */
static int64_t num_lines;

static void open_scanner(lr_scanner *scanner)
{
    lors = lors_from(scanner);
    num_lines = 0;
    grid = lr_grid_centred((const int[3]){14, 13, 5}, (const double[3]){4, 4, 3});
    all_lines = kept(lors->count, sizeof(*all_lines));
    lor_of = kept(lors->count, sizeof(*lor_of));
    for (int64_t lor = 0; lor < lors->count; lor++) {
        if (lr_lors_in_coincidence(lors, lor)) {
            lor_of[num_lines] = lor;
            all_lines[num_lines++] = event_of(lors, lor, false);
        }
    }
}

static int set_up(void **state)
{
    open_scanner(decagon(&usual_rules));
    return 0;
}

static lr_listmode_params params_of(const lr_event *events, int64_t count)
{
    lr_listmode_params params = case_params(lors, &grid, events, count);
    params.tube.fwhm_mm = 5;
    return params;
}

/* --- factors and sensitivity --- */

/* A^T n by the operator that has an event on every LOR. */
static double *back_of_all(bool with_factors)
{
    const lr_listmode_params params = params_of(all_lines, num_lines);
    double *ones = kept_doubles(num_lines);
    for (int64_t k = 0; k < num_lines; k++) ones[k] = with_factors ? case_factor(usual_range, lor_of[k]) : 1.0;
    return image_by(&params, ones);
}

static void check_sensitivity(bool with_factors)
{
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    lr_listmode_params params = params_of(all_lines, 100);
    params.num_ranges = 4;
    params.factors = with_factors ? &factors : NULL;
    lr_operator *op = kept_operator(&params);
    const double *whole = sensitivity_of(op, NULL), *expected = back_of_all(with_factors);
    const double *part = sensitivity_of(op, &(lr_selection){.pairs = (const int32_t[3]){0, 1, 3}, .num_pairs = 3});
    assert_true(l2_apart(whole, expected, num_voxels) < 1e-6);
    for (int64_t v = 0; v < num_voxels; v++) assert_close(part[v], 0.75 * whole[v], 1e-6);
    assert_int_equal(lr_listmode_get_info(op)->sensitivity_lines, lors->count);
    assert_true(lr_listmode_get_info(op)->sensitivity_error == 0);
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
    return sensitivity_by(&params, NULL);
}

/* A backend may draw the sample of lines itself: it must draw the same lines as native. */
static void check_sample(void)
{
    enum { PARTS = 3 };
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    const double *expected = sample_by("native", 0, 1), *whole = sample_by(test_backend, 0, 1);
    double *sum = kept_doubles(num_voxels);
    for (int part = 0; part < PARTS; part++) {
        const double *found = sample_by(test_backend, part, PARTS);
        for (int64_t v = 0; v < num_voxels; v++) sum[v] += found[v];
    }
    assert_all(l2_apart(whole, expected, num_voxels) < 1e-6, l2_apart(sum, expected, num_voxels) < 1e-6);
}

/* Six inclined modules, in which rows and columns do not tell which crystals are in coincidence. */
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
extern int fake_lines_drawn; /* lines drawn by the stand-in device */
#endif

/* Rules under which the crystal pairs of two modules that are in coincidence are all pairs, those of some rows and
   columns, or any set. */
static void test_lors_out_of_coincidence_are_left_out(void **state)
{
    static const lr_coincidence rules[] = {
        {.min_module_difference = 3},
        {.min_module_difference = 3, .limits_ring_difference = true, .max_ring_difference = 1},
        {.field_of_view_mm = 70},
        {.field_of_view_mm = 70, .limits_ring_difference = true, .max_ring_difference = 1}};
    enum { RULES = length_of(rules) };
    for (int k = 0; k <= RULES; k++) {
        destroy_kept_since(0);
        open_scanner(k < RULES ? decagon(&rules[k]) : leaning());
        assert_true(num_lines > 0 && (num_lines < lors->count) == (k > 0));
#ifdef LR_TEST_FAKE_LISTMODE
        const int before = fake_lines_drawn;
        check_sensitivity(false);
        assert_int_equal(fake_lines_drawn > before, most_bytes() == 0); /* if the device has enough memory for them */
#else
        check_sensitivity(false);
#endif
        check_sample();
    }
}

/* The mean over seeds approaches the sensitivity of all LORs, and the error of each seed is as large as reported. */
static void test_samples_are_not_biased(void **state)
{
    enum { SEEDS = 60 };
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    double *expected = back_of_all(true), *mean = kept_doubles(num_voxels), level = 0, said = 0, off = 0, bias = 0;
    for (int64_t v = 0; v < num_voxels; v++) level += expected[v] / (double)num_voxels;
    for (int seed = 0; seed < SEEDS; seed++) {
        lr_listmode_params params = params_of(all_lines, 100);
        lr_listmode_info info;
        params.factors = &factors;
        params.sensitivity_lines = lors->count / 5;
        params.seed = (uint64_t)seed;
        const double *found = sensitivity_by(&params, &info);
        double gap = 0;
        for (int64_t v = 0; v < num_voxels; v++) {
            mean[v] += found[v] / SEEDS;
            gap += (found[v] - expected[v]) * (found[v] - expected[v]) / (double)num_voxels;
        }
        said += info.sensitivity_error / SEEDS;
        off += sqrt(gap) / level / SEEDS;
    }
    for (int64_t v = 0; v < num_voxels; v++)
        bias += (mean[v] - expected[v]) * (mean[v] - expected[v]) / (double)num_voxels;
    bias = sqrt(bias) / level;
    print_message("a sample says %.3g, and is off by %.3g; their mean by %.3g\n", said, off, bias);
    assert_all(said > 0.7 * off && said < 1.6 * off, bias < 1.5 * off / sqrt(SEEDS));
}

static void test_rows_have_their_factors(void **state)
{
    enum { COUNT = 500 };
    lr_event *events = kept(COUNT, sizeof(*events));
    int64_t lor[COUNT];
    uint64_t seed = 11;
    for (int k = 0; k < COUNT; k++) {
        const int64_t line = (int64_t)(test_random(&seed) * (double)num_lines);
        events[k] = all_lines[line];
        lor[k] = lor_of[line];
    }
    const double *x = kept_random_doubles(lr_grid_num_voxels(&grid), 0, 1, &seed);
    lr_listmode_params params = params_of(events, COUNT);
    const double *without = values_by(&params, x);
    params.factors = &factors;
    const double *with = values_by(&params, x);
    for (int k = 0; k < COUNT; k++) assert_close(with[k], case_factor(usual_range, lor[k]) * without[k], 1e-6);
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

/* counts: NULL = every event counts 1. */
static double *reconstruct(lr_operator *op, const float *counts, int subsets, struct course *course)
{
    const int64_t count = test_num_values(op, NULL), num_voxels = lr_grid_num_voxels(&grid);
    double *image = kept_doubles(num_voxels);
    const lr_vector data = lr_vector_of_floats(counts != NULL ? counts : kept_equal_floats(count, 1), count);
    assert_ok(lr_recon(&filled(lr_recon_params, .op = op, .data = &data, .iterations = ITERATIONS, .subsets = subsets,
                               .iteration = note, .user = course, .log = &test_log.log),
                       vector_of(image, num_voxels)));
    return image;
}

/* Counts of every line, and the same counts as single events. */
static void test_events_give_the_image_of_their_counts(void **state)
{
    float *counts = kept_floats(num_lines);
    lr_event *events = kept(MOST_COUNTS * num_lines, sizeof(*events));
    uint64_t seed = 5;
    int64_t count = 0;
    for (int64_t k = 0; k < num_lines; k++) {
        counts[k] = (float)(int)(test_random(&seed) * (MOST_COUNTS + 1));
        for (int n = 0; n < (int)counts[k]; n++) events[count++] = all_lines[k];
    }
    struct course binned, listed;
    lr_listmode_params params = params_of(all_lines, num_lines);
    const double *of_counts = reconstruct(kept_operator(&params), counts, 1, &binned);
    params = params_of(events, count);
    const double *of_events = reconstruct(kept_operator(&params), NULL, 1, &listed);
    assert_true(l2_apart(of_events, of_counts, lr_grid_num_voxels(&grid)) < 1e-5);
    for (int n = 0; n < ITERATIONS; n++) {
        assert_true(n == 0 || listed.likelihood[n] > listed.likelihood[n - 1]);
        /* EM explains every event that the grid reaches. */
        assert_close(listed.sensitive[n], listed.measured[n], 1e-5);
        assert_all(listed.measured[n] == binned.measured[n], listed.measured[n] > 0.3 * (double)count);
        assert_true(listed.measured[n] < (double)count);
    }
}

/* Iterations with subsets come nearer to the limit of ML-EM than the same number of its iterations. */
static void test_subsets_are_ranges(void **state)
{
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    const float *ones = kept_equal_floats(num_lines, 1);
    lr_event *events = kept(num_lines, sizeof(*events));
    double *plain = kept_doubles(num_voxels);
    uint64_t seed = 3;
    for (int64_t k = 0; k < num_lines; k++) events[k] = all_lines[(int64_t)(test_random(&seed) * (double)num_lines)];
    struct course subsets, whole;
    lr_listmode_params params = params_of(events, num_lines);
    params.num_ranges = 4;
    lr_operator *op = kept_operator(&params);
    double *image = reconstruct(op, NULL, 4, &subsets);
    reconstruct(op, NULL, 1, &whole);
    assert_true(subsets.likelihood[ITERATIONS - 1] > whole.likelihood[ITERATIONS - 1]);
    const lr_vector data = lr_vector_of_floats(ones, num_lines);
    if (most_bytes() == 0) { /* otherwise vectors are on the host */
        reconstruct_in_place(op, &(lr_recon_params){.data = &data, .iterations = ITERATIONS, .subsets = 4}, plain);
        assert_true(l2_apart(plain, image, num_voxels) < 1e-5);
    }
    assert_fails(lr_recon(&(lr_recon_params){.op = op, .data = &data, .subsets = 5, .log = &test_log.log},
                          vector_of(image, num_voxels)),
                 LR_USAGE, &test_log, "5 subsets: they are made of ranges of events, of which there are 4");
}

/* --- requests that are refused --- */

static void test_mistakes_are_told(void **state)
{
    lr_listmode_params params = params_of(all_lines, 10);
    params.backend = "raster";
    assert_none(lr_listmode_create(&params), LR_USAGE, &test_log, "the family listmode has no backend \"raster\"");
    params = params_of(NULL, 10);
    assert_none(lr_listmode_create(&params), LR_USAGE, &test_log, "needs LORs, a grid and events");
    params = params_of(all_lines, 10);
    params.sensitivity_lines = -1;
    assert_none(lr_listmode_create(&params), LR_USAGE, &test_log, "must not be negative");
    /* Two crystals of one module have no LOR, and therefore no factor. */
    params = params_of(&(lr_event){.crystals = {0, 1}, .weight = 1}, 1);
    params.factors = &factors;
    assert_none(lr_listmode_create(&params), LR_BAD_INPUT, &test_log,
                "event 0 joins crystals 0 and 1, whose modules are not");
}

case_main("cpu", set_up,
          CASES(test_it_is_that_of_every_lor, test_lors_out_of_coincidence_are_left_out, test_samples_are_not_biased,
                test_rows_have_their_factors, test_events_give_the_image_of_their_counts, test_subsets_are_ranges,
                test_mistakes_are_told))
