/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Operators of lines given by their ends, and of events given in columns, for the backend that argv[1] names: closed
 * forms, the adjoint law, events of a scanner, ranges, the sensitivity, and errors. The closed forms include the
 * cases of parallelproj's public tests: each axis in both directions, lines between voxels, lines that miss the
 * image, time of flight. */
#include "listmode/cases.h"

#include <lr/events.h>

static lr_grid grid;
static const lr_listmode_kernel kernels[2] = {LR_LISTMODE_LINE, LR_LISTMODE_TUBE};

/* Lines and the arrays of their ends and times. */
struct lines {
    int64_t count;
    float (*start)[3], (*end)[3], *tof_mm;
    lr_vector vectors[3];
    lr_lines given;
};

/* Allocates lines without time of flight. */
static struct lines *open_lines(int64_t count)
{
    struct lines *lines = kept(1, sizeof(*lines));
    *lines = filled(struct lines, .count = count, .start = kept(count, sizeof(*lines->start)),
                    .end = kept(count, sizeof(*lines->end)), .tof_mm = kept_floats(count));
    lines->vectors[0] = lr_vector_of_floats(lines->start[0], 3 * count);
    lines->vectors[1] = lr_vector_of_floats(lines->end[0], 3 * count);
    lines->vectors[2] = lr_vector_of_floats(lines->tof_mm, count);
    lines->given = (lr_lines){.start_mm = &lines->vectors[0], .end_mm = &lines->vectors[1]};
    return lines;
}

static struct lines *lines_between(const float (*ends)[2][3], int64_t count)
{
    struct lines *lines = open_lines(count);
    for (int n = 0; n < count; n++) {
        memcpy(lines->start[n], ends[n][0], sizeof(lines->start[n]));
        memcpy(lines->end[n], ends[n][1], sizeof(lines->end[n]));
    }
    return lines;
}

/* Random lines in and around the grid: both ends are outside, inside, or on either side of its border; some lines
   miss it. */
static struct lines *draw_lines(int64_t count, uint64_t *seed)
{
    struct lines *lines = open_lines(count);
    for (int64_t n = 0; n < count; n++) {
        const double reach_mm = n % 3 == 0 ? 40 : 160;
        for (int k = 0; k < 3; k++) {
            lines->start[n][k] = (float)(reach_mm * (2.0 * test_random(seed) - 1.0));
            lines->end[n][k] = (float)(reach_mm * (2.0 * test_random(seed) - 1.0));
        }
        lines->tof_mm[n] = (float)(120.0 * test_random(seed) - 60.0);
    }
    return lines;
}

static void give_times(struct lines *lines, double resolution_ps, double bin_mm)
{
    lines->given.tof_mm = &lines->vectors[2];
    lines->given.tof_resolution_ps = resolution_ps;
    lines->given.tof_bin_mm = bin_mm;
}

static lr_listmode_params params_of(const struct lines *lines, lr_listmode_kernel kernel)
{
    lr_listmode_params params = case_params(NULL, &grid, NULL, 0);
    params.lines = &lines->given;
    params.kernel = kernel;
    return params;
}

/* Voxels are not cubic, and the grid is off centre so that nothing is symmetric by chance. */
static int set_up(void **state)
{
    grid = shifted_grid((const int[3]){28, 21, 18}, (const double[3]){4, 5, 6}, (const double[3]){1.3, -2.1, 0.7});
    return 0;
}

/* --- closed forms --- */

static double tolerance(void)
{
    return test_backend_is("cpu") ? 1e-12 : 2e-6;
}

static int64_t voxel_at(const int at[3])
{
    return ((int64_t)at[2] * grid.size[1] + at[1]) * grid.size[0] + at[0];
}

/* Sum over the row of voxels through `at` along an axis, times the edge length of a voxel. */
static double row_integral(const double *image, int axis, const int at[3])
{
    int here[3] = {at[0], at[1], at[2]};
    double sum = 0;
    for (here[axis] = 0; here[axis] < grid.size[axis]; here[axis]++) sum += image[voxel_at(here)];
    return sum * grid.voxel_mm[axis];
}

/* Lines along each axis, in both directions: through voxel centres they see only these voxels, between two rows they
 * see both by half, and outside the image they see nothing. */
static void test_axes(void **state)
{
    enum { EACH = 3 };
    uint64_t seed = test_seed();
    struct lines *lines = open_lines((int64_t)3 * 2 * EACH);
    for (int64_t n = 0; n < lines->count; n++) {
        const int axis = (int)(n / (2 * EACH)), across = (axis + 1) % 3;
        const bool is_turned = n / EACH % 2 != 0;
        for (int k = 0; k < 3; k++) lines->start[n][k] = (float)(grid.origin_mm[k] + 7 * grid.voxel_mm[k]);
        if (n % EACH == 1) lines->start[n][across] += (float)(0.5 * grid.voxel_mm[across]);
        if (n % EACH == 2) lines->start[n][across] = 300;
        memcpy(lines->end[n], lines->start[n], sizeof(lines->end[n]));
        lines->start[n][axis] = is_turned ? 250 : -250;
        lines->end[n][axis] = -lines->start[n][axis];
    }
    const double *image = kept_random_singles(lr_grid_num_voxels(&grid), 0, 1, &seed);
    const lr_listmode_params params = params_of(lines, LR_LISTMODE_LINE);
    const double *values = values_by(&params, image);
    for (int64_t n = 0; n < lines->count; n++) {
        const int axis = (int)(n / (2 * EACH)), across = (axis + 1) % 3;
        int next[3] = {7, 7, 7};
        next[across]++;
        const double one = row_integral(image, axis, (const int[3]){7, 7, 7}), other = row_integral(image, axis, next);
        const double expected[EACH] = {one, 0.5 * (one + other), 0};
        assert_true(fabs(values[n] - expected[n % EACH]) < 3e-6 * one); /* ends are floats */
    }
}

/* Ends inside the image, and oblique lines: the value for an image of ones is the length of the line in the image. */
static void test_lengths(void **state)
{
    static const float ends[6][2][3] = {{{-20, 3, 4}, {17.5f, 3, 4}},   {{0, -30.25f, -2}, {0, 11, -2}},
                                        {{1, 1, -31}, {1, 1, 29.75f}},  {{-20, -15, -10}, {21, 18, 13}},
                                        {{9, 8, 30}, {-8, -7, -25.5f}}, {{3, 2.25f, 1}, {3.5f, 2, 1.125f}}};
    struct lines *lines = lines_between(ends, 6);
    for (int kernel = 0; kernel < 2; kernel++) {
        lr_listmode_params params = params_of(lines, kernels[kernel]);
        params.tube.fwhm_mm = 5;
        const double *values = values_by(&params, NULL);
        for (int n = 0; n < 6; n++) {
            double square = 0;
            for (int k = 0; k < 3; k++) square += pow((double)ends[n][1][k] - (double)ends[n][0][k], 2);
            assert_close(values[n], sqrt(square), 2 * tolerance());
        }
    }

    /* A line between the two end faces of the grid has the length of the grid along its axis, divided by the cosine. */
    for (int n = 0; n < 6; n++) {
        for (int k = 0; k < 3; k++) {
            lines->start[n][k] = k == n % 3 ? -150.0f : (float)(-5.0 - n);
            lines->end[n][k] = k == n % 3 ? 150.0f : (float)(11.0 + n);
        }
    }
    const lr_listmode_params params = params_of(lines, LR_LISTMODE_LINE);
    const double *values = values_by(&params, NULL);
    for (int n = 0; n < 6; n++) {
        const double extent = grid.size[n % 3] * grid.voxel_mm[n % 3], lean = (16.0 + 2 * n) / 300.0;
        assert_close(values[n], extent * sqrt(1.0 + 2 * lean * lean), 2 * tolerance());
    }
}

/* Lines that miss the image, or end before it, have the value 0 and no elements. */
static void test_misses(void **state)
{
    static const float ends[4][2][3] = {{{-200, 90, 0}, {200, 90, 0}},
                                        {{-200, 0, 0}, {-100, 0, 0}},
                                        {{0, -150, 150}, {0, 150, 150}},
                                        {{150, 150, -300}, {150, 150.5f, 300}}};
    const struct lines *lines = lines_between(ends, 4);
    for (int kernel = 0; kernel < 2; kernel++) {
        const lr_listmode_params params = params_of(lines, kernels[kernel]);
        const double *values = values_by(&params, NULL), *image = image_by(&params, NULL);
        for (int n = 0; n < 4; n++) assert_true(values[n] == 0);
        for (int64_t v = 0; v < lr_grid_num_voxels(&grid); v++) assert_true(image[v] == 0);
    }
}

/* The sum over bins, times their width, is the value without time of flight, whatever the width. */
static void test_bins_add_up(void **state)
{
    enum { LINES = 7, BINS = 61 };
    uint64_t seed = 5;
    const double bin_mm = 7.5;
    struct lines *lines = draw_lines(LINES, &seed), *each = open_lines(LINES * BINS);
    for (int64_t k = 0; k < each->count; k++) {
        memcpy(each->start[k], lines->start[k / BINS], sizeof(each->start[k]));
        memcpy(each->end[k], lines->end[k / BINS], sizeof(each->end[k]));
        each->tof_mm[k] = (float)((double)(k % BINS - BINS / 2) * bin_mm);
    }
    give_times(each, 350, bin_mm);
    const double *image = kept_random_singles(lr_grid_num_voxels(&grid), 0, 1, &seed);
    for (int kernel = 0; kernel < 2; kernel++) {
        const lr_listmode_params all = params_of(lines, kernels[kernel]), binned = params_of(each, kernels[kernel]);
        const double *expected = values_by(&all, image), *values = values_by(&binned, image);
        for (int n = 0; n < LINES; n++) {
            double sum = 0;
            for (int bin = 0; bin < BINS; bin++) sum += bin_mm * values[n * BINS + bin];
            assert_true(fabs(sum - expected[n]) <= 2e-5 * fmax(expected[n], 1.0));
        }
    }
}

/* tof_mm is positive towards the end of a line. An event at a hot voxel has the Gaussian's integral over the voxel
 * as its value; on the reversed line, the same position has the negative tof_mm. */
static void test_times(void **state)
{
    const double resolution_ps = 400, sigma = resolution_ps * 0.149896229 / 2.3548200450309493;
    const double held = erf(3.0 / sqrt(2.0));
    const int at[3] = {20, 8, 9};
    const double centre[3] = {grid.origin_mm[0] + 20 * grid.voxel_mm[0], grid.origin_mm[1] + 8 * grid.voxel_mm[1],
                              grid.origin_mm[2] + 9 * grid.voxel_mm[2]};
    struct lines *lines = open_lines(4);
    for (int n = 0; n < 4; n++) {
        const bool is_turned = n % 2 != 0;
        for (int k = 0; k < 3; k++) lines->start[n][k] = lines->end[n][k] = (float)centre[k];
        lines->start[n][0] = is_turned ? 210 : -150;
        lines->end[n][0] = is_turned ? -150 : 210;
        lines->tof_mm[n] = (float)((is_turned ? -1.0 : 1.0) * (n < 2 ? centre[0] - 30.0 : centre[0] - 30.0 - 25.0));
    }
    give_times(lines, resolution_ps, 0);
    double *image = kept_doubles(lr_grid_num_voxels(&grid));
    image[voxel_at(at)] = 1;
    const lr_listmode_params params = params_of(lines, LR_LISTMODE_LINE);
    const double *values = values_by(&params, image);
    for (int n = 0; n < 4; n++) {
        const double off = n < 2 ? 0.0 : 25.0, half = 0.5 * grid.voxel_mm[0];
        const double low = (off - half) / (sigma * sqrt(2.0)), high = (off + half) / (sigma * sqrt(2.0));
        assert_close(values[n], 0.5 * (erf(high) - erf(low)) / held, 3e-5); /* ends and positions are floats */
    }
}

/* --- laws --- */

static void check_adjoint(const lr_listmode_params *params)
{
    const struct both both = both_by(params, NULL);
    expect_adjoint(&both, 1e-5);
}

/* A line with its own resolution has the value that an operator with this resolution for all lines gives. */
static void test_resolutions(void **state)
{
    enum { LINES = 60, RESOLUTIONS = 3 };
    static const float choices_ps[RESOLUTIONS] = {150, 330, 600};
    uint64_t seed = 7;
    struct lines *lines = draw_lines(LINES, &seed);
    const double *image = kept_random_singles(lr_grid_num_voxels(&grid), 0, 1, &seed), *alike[RESOLUTIONS];
    float own_ps[LINES];
    for (int n = 0; n < LINES; n++) own_ps[n] = choices_ps[n % RESOLUTIONS];
    const lr_vector all_ps = lr_vector_of_floats(own_ps, LINES);
    for (int k = 0; k < 4; k++) {
        const double bin_mm = k % 2 ? 9 : 0;
        const lr_listmode_params params = params_of(lines, kernels[k / 2]);
        for (int choice = 0; choice < RESOLUTIONS; choice++) {
            give_times(lines, (double)choices_ps[choice], bin_mm);
            alike[choice] = values_by(&params, image);
        }
        give_times(lines, 0, bin_mm);
        lines->given.tof_resolutions_ps = &all_ps;
        const double *values = values_by(&params, image);
        for (int n = 0; n < LINES; n++) assert_close(values[n], alike[n % RESOLUTIONS][n], 1e-4);
        check_adjoint(&params);
        lines->given.tof_resolutions_ps = NULL;
    }
}

enum { VARIANTS = 6 };

static const lr_blobs blobs = {.radius_mm = 8, .alpha = 8};

/* Lines and tubes, without and with time of flight in bins and without bins, and blobs. */
static lr_listmode_params variant(struct lines *lines, int number)
{
    lines->given.tof_mm = NULL;
    if (number % 3 > 0) give_times(lines, 300, number % 3 == 1 ? 0 : 20);
    return params_of(lines, kernels[number / 3]);
}

/* Back is the transpose of forward, and every backend has the values of the reference, in the caller's order, also
 * if its device cannot hold all lines at once. */
static void test_reference(void **state)
{
    uint64_t seed = test_seed();
    struct lines *lines = draw_lines(1500, &seed);
    for (int k = 0; k < VARIANTS; k++) {
        lr_listmode_params params = variant(lines, k);
        params.backend = "cpu";
        params.num_ranges = 1;
        const struct both expected = both_by(&params, NULL);
        params.backend = test_backend;
        params.num_ranges = 3;
        for (int few = 0; few < 2; few++) {
            if (few) params.max_memory_bytes = 1;
            const struct both found = both_by(&params, NULL);
            expect_both(&found, &expected, 1e-5, 1e-5);
            expect_adjoint(&found, 1e-5);
        }
    }
    lr_listmode_params params = variant(lines, 1);
    params.blobs = &blobs;
    check_adjoint(&params);
}

/* --- a scanner's events --- */

struct measured {
    lr_lors *lors;
    int64_t count;
    lr_event *events;
    int32_t (*crystals)[2];
    float *tof_mm, *weights;
    double *times_s;
    bool *is_delayed;
    double (*ends[2])[3];
    lr_vector vectors[2]; /* counted by line end */
    lr_event_columns columns;
    lr_listmode_params params; /* counted by event */
};

static struct measured *open_measured(void)
{
    uint64_t seed = test_seed();
    struct measured *of = kept(1, sizeof(*of));
    const int64_t count = of->count = 900;
    of->lors = lors_from(decagon(&usual_rules));
    of->events = kept(count, sizeof(*of->events));
    of->crystals = kept(count, sizeof(*of->crystals));
    of->tof_mm = kept_floats(count);
    of->weights = kept_floats(count);
    of->times_s = kept_doubles(count);
    of->is_delayed = kept(count, sizeof(*of->is_delayed));
    for (int k = 0; k < 2; k++) {
        of->ends[k] = kept(count, sizeof(*of->ends[k]));
        of->vectors[k] = lr_vector_of_doubles(of->ends[k][0], 3 * count);
    }
    for (int64_t n = 0; n < count; n++) {
        int64_t lor = (int64_t)(test_random(&seed) * (double)of->lors->count);
        while (!lr_lors_in_coincidence(of->lors, lor)) lor = (lor + 1) % of->lors->count;
        of->events[n] = event_of(of->lors, lor, n % 2 != 0);
        of->times_s[n] = 0.25 * (double)n;
        of->events[n].weight = of->weights[n] = (float)(1 + n % 3);
        of->events[n].tof_mm = of->tof_mm[n] = (float)(60.0 * test_random(&seed) - 30.0);
        of->is_delayed[n] = n % 5 == 0;
        for (int k = 0; k < 2; k++) {
            of->crystals[n][k] = of->events[n].crystals[k];
            lr_scanner_hit_centre(of->lors->scanner, of->crystals[n][k], of->ends[k][n]);
        }
    }
    of->columns =
        filled(lr_event_columns, .count = count, .crystals = (const int32_t(*)[2])of->crystals, .tof_mm = of->tof_mm,
               .weights = of->weights, .times_s = of->times_s, .is_delayed = of->is_delayed);
    of->params = case_params(of->lors, &grid, of->events, count);
    return of;
}

static lr_listmode_params with_columns(const lr_listmode_params *params, const struct measured *of)
{
    lr_listmode_params with = *params;
    with.events = NULL;
    with.columns = &of->columns;
    return with;
}

static lr_listmode_params with_lines(const lr_listmode_params *params, const lr_lines *lines)
{
    lr_listmode_params with = *params;
    with.events = NULL;
    with.count = 0;
    with.lors = NULL;
    with.info = NULL;
    with.factors = NULL;
    with.lines = lines;
    return with;
}

/* Checks that two operators have the same values and back-projections. */
static void check_alike(const lr_listmode_params *one, const lr_listmode_params *other, double most)
{
    const struct both expected = both_by(one, NULL), found = both_by(other, NULL);
    expect_both(&found, &expected, most, most);
}

/* Lines between the centres of crystals, and columns of crystal numbers, give the values of the same events. Sums of
 * floats may be added in another order. */
static void test_lines_of_crystals_are_events(void **state)
{
    const struct measured *of = open_measured();
    const lr_vector times = lr_vector_of_floats(of->tof_mm, of->count);
    for (int has_tof = 0; has_tof < 2; has_tof++) {
        const lr_events_info info = {.has_tof = true, .tof_resolution_ps = 250, .tof_bin_mm = 12};
        const lr_lines lines = filled(lr_lines, .start_mm = &of->vectors[0], .end_mm = &of->vectors[1],
                                      .tof_mm = has_tof ? &times : NULL, .tof_resolution_ps = 250, .tof_bin_mm = 12);
        lr_listmode_params of_events = of->params;
        of_events.no_solid_angles = true;
        of_events.tube.fwhm_mm = 6;
        of_events.num_ranges = 2;
        of_events.info = has_tof ? &info : NULL;
        const lr_listmode_params of_lines = with_lines(&of_events, &lines);
        lr_listmode_params of_columns = with_columns(&of_events, of);
        of_columns.count = 0;
        check_alike(&of_events, &of_lines, 1e-6);
        check_alike(&of_events, &of_columns, 1e-6);
        of_events.kernel = of_columns.kernel = LR_LISTMODE_EXACT;
        if (has_tof) check_alike(&of_events, &of_columns, 1e-6);
    }
}

/* Factors of LORs apply to events in columns; for lines, factors are given one by one. */
static void test_factors(void **state)
{
    const struct measured *of = open_measured();
    lr_listmode_params of_events = of->params;
    of_events.no_solid_angles = true;
    of_events.factors = &factors;
    const lr_listmode_params of_columns = with_columns(&of_events, of);
    check_alike(&of_events, &of_columns, 1e-6);

    const lr_lines lines = {.start_mm = &of->vectors[0], .end_mm = &of->vectors[1]};
    int64_t *numbers = kept(of->count, sizeof(*numbers));
    float *each = kept_floats(of->count);
    lr_events_lors(of->lors, &(lr_event_span){of->events, of->count, 1}, numbers);
    for (int64_t n = 0; n < of->count; n++) each[n] = (float)case_factor(usual_range, numbers[n]);
    of_events.tube.fwhm_mm = 6; /* lines have no crystals that would set the default */
    lr_listmode_params of_lines = with_lines(&of_events, &lines);
    of_lines.event_factors = each;
    check_alike(&of_events, &of_lines, 1e-6);
}

/* Binning columns gives the counts per LOR of their events, prompts and delayed events separately. */
static void test_columns_are_binned(void **state)
{
    struct measured *of = open_measured();
    of->crystals[3][1] = of->crystals[3][0] + (of->crystals[3][0] % 12 < 11 ? 1 : -1); /* in the same module */
    lr_prompts_delayeds data;
    test_log_init(&test_log);
    assert_ok(lr_events_bin_columns(&of->columns, of->lors, &data, &test_log.log));
    const lr_lor_data *const both[2] = {keep(data.prompts), keep(data.delayeds)};
    double *sums[2] = {kept_doubles(of->lors->count), kept_doubles(of->lors->count)};
    for (int64_t n = 0; n < of->count; n++) {
        if (n != 3)
            sums[of->is_delayed[n]][lr_lors_number(of->lors, of->crystals[n][0], of->crystals[n][1])] +=
                (double)of->weights[n];
    }
    for (int k = 0; k < 2; k++) {
        for (int64_t n = 0; n < both[k]->count; n++)
            sums[k][both[k]->index != NULL ? both[k]->index[n] : n] -= (double)both[k]->values[n];
        for (int64_t lor = 0; lor < of->lors->count; lor++) assert_true(sums[k][lor] == 0);
    }
    assert_ints(data.counts.prompts + data.counts.delayeds, of->count, data.counts.delayeds, (of->count + 4) / 5);
    assert_int_equal(data.counts.not_in_coincidence, 1);

    of->crystals[7][0] = of->lors->scanner->num_crystals;
    assert_fails(lr_events_bin_columns(&of->columns, of->lors, &data, &test_log.log), LR_BAD_INPUT, &test_log,
                 "event 7 names crystal 120: the scanner has crystals 0 to 119");
    assert_null(data.prompts);
    of->crystals[7][0] = 0;
    of->times_s[5] = -1;
    assert_fails(lr_events_bin_columns(&of->columns, of->lors, &data, &test_log.log), LR_BAD_INPUT, &test_log,
                 "event 5 has a time of -1 s");
}

struct heard {
    const lr_event_columns *columns;
    int64_t count;
};

static lr_status hear(void *user, const lr_event *events, int64_t count)
{
    struct heard *heard = user;
    const lr_event_columns *columns = heard->columns;
    assert_true(count > 0 && count <= 1 << 16);
    for (int64_t k = 0; k < count; k++, heard->count++) {
        assert_int_equal(events[k].crystals[1], columns->crystals[heard->count][1]);
        assert_true(events[k].tof_mm == 0 && events[k].weight == 1 && !events[k].is_delayed);
        assert_int_equal(events[k].time_ms, (uint32_t)heard->count / 2);
    }
    return LR_OK;
}

/* Columns that are not given have the defaults of an event; blocks of events are consecutive. */
static void test_columns_in_blocks(void **state)
{
    enum { COUNT = (1 << 17) + 3 };
    int32_t(*crystals)[2] = kept(COUNT, sizeof(*crystals));
    double *times_s = kept_doubles(COUNT);
    for (int k = 0; k < COUNT; k++) {
        crystals[k][1] = k;
        times_s[k] = (k + 0.25) / 2000.0;
    }
    const lr_event_columns columns = {.count = COUNT, .crystals = (const int32_t(*)[2])crystals, .times_s = times_s};
    struct heard heard = {.columns = &columns};
    const lr_event_sink sink = {.take = hear, .user = &heard};
    assert_ok(lr_events_from_columns(&columns, &sink, NULL));
    assert_int_equal(heard.count, COUNT);
    assert_int_equal(lr_events_from_columns(&(lr_event_columns){.count = 3}, &sink, NULL), LR_USAGE);
}

/* --- ranges and sensitivity --- */

/* Ranges are parts of all lines, in the caller's order; the sensitivity of a part is A^T 1 of its lines. */
static void test_ranges_add_up(void **state)
{
    uint64_t seed = test_seed();
    const int64_t num_voxels = lr_grid_num_voxels(&grid), bounds[4] = {0, 200, 550, 800};
    struct lines *lines = draw_lines(800, &seed);
    give_times(lines, 300, 0);
    lr_listmode_params params = params_of(lines, LR_LISTMODE_LINE);
    params.ranges = bounds;
    params.num_ranges = 3;
    params.event_factors = kept_random_floats(800, 0.5, 1.5, &seed);
    lr_operator *op = kept_operator(&params);
    const struct both both = both_of(op, NULL);
    double *expected = kept_doubles(num_voxels), *sum = kept_doubles(num_voxels);
    back(op, kept_equal_doubles(800, 1), expected);
    for (int32_t r = 0; r < 3; r++) {
        const lr_selection part = {.pairs = &r, .num_pairs = 1};
        double *values = kept_doubles(bounds[r + 1] - bounds[r]);
        forward(op, &part, both.x, values);
        for (int64_t n = bounds[r]; n < bounds[r + 1]; n++)
            assert_true(fabs(values[n - bounds[r]] - both.values[n]) <= 1e-6 * fmax(both.values[n], 1e-3));
        const double *one = sensitivity_of(op, &part);
        for (int64_t v = 0; v < num_voxels; v++) sum[v] += one[v];
    }
    assert_true(l2_apart(sensitivity_of(op, NULL), expected, num_voxels) < 1e-6);
    assert_true(l2_apart(sum, expected, num_voxels) < 1e-6);
    assert_true(lr_operator_get_info(op)->of_events && lr_listmode_get_info(op)->count == 800);

    /* Other lines that use the sensitivity of these get the fraction that belongs to their own part. */
    lr_listmode_params of_few = params_of(draw_lines(10, &seed), LR_LISTMODE_LINE);
    of_few.num_ranges = 5;
    of_few.sensitivity_of = op;
    const lr_selection two = {.pairs = (const int32_t[2]){0, 3}, .num_pairs = 2};
    const double *share = sensitivity_of(kept_operator(&of_few), &two);
    for (int64_t v = 0; v < num_voxels; v++) sum[v] = 0.4 * expected[v];
    assert_true(l2_apart(share, sum, num_voxels) < 1e-6);
}

/* Lines use the sensitivity of a scanner's LORs if they name that operator, and a scanner's events use that of
   lines. */
static void test_sensitivity_of_others(void **state)
{
    uint64_t seed = test_seed();
    const size_t bytes = (size_t)lr_grid_num_voxels(&grid) * sizeof(double);
    lr_listmode_params of_lines = params_of(draw_lines(40, &seed), LR_LISTMODE_TUBE);
    lr_listmode_params of_events = open_measured()->params;
    of_events.kernel = LR_LISTMODE_TUBE;
    of_lines.sensitivity_of = kept_operator(&of_events);
    assert_none(lr_listmode_create(&of_lines), LR_USAGE, &test_log, "has solid angles: give both the same kernel");
    of_lines.sensitivity_of = NULL;
    of_events.no_solid_angles = true;
    of_lines.tube.fwhm_mm = of_events.tube.fwhm_mm = 6;
    for (int k = 0; k < 2; k++) {
        lr_operator *one = kept_operator(k == 0 ? &of_events : &of_lines);
        lr_listmode_params naming = k == 0 ? of_lines : of_events;
        naming.sensitivity_of = one;
        lr_operator *other = kept_operator(&naming);
        const double *of_other = sensitivity_of(other, NULL); /* the operator that names another is asked first */
        assert_memory_equal(sensitivity_of(one, NULL), of_other, bytes);
        assert_true(largest_number(of_other, lr_grid_num_voxels(&grid)) > 0);
        assert_int_equal(lr_operator_get_info(one)->of_lines, k == 1);
        assert_false(lr_operator_get_info(other)->of_lines);
    }
}

/* Data of lines are reconstructed to an image that explains them: MLEM with A^T 1 keeps the counts. */
static void test_reconstruction(void **state)
{
    uint64_t seed = test_seed();
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    const struct lines *lines = draw_lines(3000, &seed);
    lr_listmode_params params = params_of(lines, LR_LISTMODE_TUBE);
    params.num_ranges = 2;
    lr_operator *op = kept_operator(&params);
    double *x = kept_random_singles(num_voxels, 0, 1, &seed), *measured = kept_doubles(lines->count);
    double *estimated = kept_doubles(lines->count), *image = kept_doubles(num_voxels), sum = 0, total = 0;
    forward(op, NULL, x, measured);
    const lr_vector data = lr_vector_of_doubles(measured, lines->count);
    lr_vector to = lr_vector_of_doubles(image, num_voxels);
    assert_ok(lr_recon(&(lr_recon_params){.op = op, .data = &data, .iterations = 20, .log = &test_log.log}, &to));
    forward(op, NULL, image, estimated);
    for (int64_t n = 0; n < lines->count; n++) {
        sum += measured[n];
        total += estimated[n];
    }
    assert_close(total, sum, 1e-4);
    assert_true(l2_apart(estimated, measured, lines->count) < 0.05);

    /* An operator that has not computed its sensitivities yet. */
    lr_recon_params recon = {.op = kept_operator(&params), .data = &data, .iterations = 3, .subsets = 2};
    reconstruct_in_place(recon.op, &recon, x);
    assert_ok(lr_recon(&recon, &to));
    assert_true(l2_apart(x, image, num_voxels) < 1e-5);
}

/* Ends and times in the memory of the backend's device are copied to the host once, and the traffic counts this. */
static void test_ends_on_a_device(void **state)
{
    if (!is_on_device()) return;
    uint64_t seed = test_seed();
    struct lines *lines = draw_lines(100, &seed);
    give_times(lines, 300, 0);
    const lr_place_kind kind = test_backend_is("compute") ? LR_PLACE_GL : LR_PLACE_CUDA;
    lr_place *place = keep(lr_place_open(&(lr_place_params){.kind = kind, .log = &test_log.log}));
    lr_vector there[3];
    for (int k = 0; k < 3; k++) {
        there[k] = kept_vector(place, lines->vectors[k].count, LR_FLOAT32);
        assert_ok(lr_vector_copy(&lines->vectors[k], &there[k]));
    }
    const lr_lines given = {.start_mm = &there[0], .end_mm = &there[1], .tof_mm = &there[2], .tof_resolution_ps = 300};
    const lr_listmode_params here = params_of(lines, LR_LISTMODE_LINE);
    lr_listmode_params elsewhere = here;
    elsewhere.lines = &given;
    const int64_t before = lr_place_get_info(place).traffic.to_host;
    lr_operator_destroy(open_operator(&elsewhere));
    assert_int_equal(lr_place_get_info(place).traffic.to_host - before, 100 * 7 * 4);
    check_alike(&here, &elsewhere, 1e-6);
}

/* --- requests that are refused --- */

static void refuse(const lr_listmode_params *params, lr_status status, const char *sentence)
{
    assert_none(lr_listmode_create(params), status, &test_log, sentence);
}

static void test_mistakes_are_told(void **state)
{
    uint64_t seed = 3;
    struct lines *lines = draw_lines(9, &seed);
    const lr_listmode_params good = params_of(lines, LR_LISTMODE_LINE);
    lr_listmode_params params = good;
    const lr_lines given = lines->given;

    const float wrong[3] = {lines->start[4][1], NAN, INFINITY};
    memcpy(lines->end[4], lines->start[4], sizeof(lines->end[4]));
    for (int k = 0; k < 3; k++) spoilt(lines->end[4][1] = wrong[k], refuse(&good, LR_BAD_INPUT, "line 4 goes from ("));
    lines->end[4][1] = -300;
    give_times(lines, 300, 0);
    spoilt(lines->tof_mm[6] = NAN, refuse(&good, LR_BAD_INPUT, "line 6 has a time of flight of nan mm"));
    spoilt(lines->given.tof_resolution_ps = 0, refuse(&good, LR_USAGE, "need its resolution in ps FWHM"));
    float own_ps[9] = {300, 250, -1, 300, 300, 300, 300, 300, 300};
    lr_vector resolutions = lr_vector_of_floats(own_ps, 9);
    lines->given.tof_resolutions_ps = &resolutions;
    refuse(&good, LR_BAD_INPUT, "line 2 has a time of flight with a resolution of -1 ps");
    spoilt(resolutions.count = 8, refuse(&good, LR_USAGE, "9 lines have 8 resolutions of time of flight"));

    lines->given = given;
    const lr_vector shorter = lr_vector_part(&lines->vectors[1], 0, 24);
    lines->given.end_mm = &shorter;
    refuse(&good, LR_USAGE, "27 numbers for their starts and 24 for their ends");
    const lr_vector many = lr_vector_of_floats(lines->start[0], INT64_C(3) << 30); /* not read, only its size */
    lines->given.start_mm = lines->given.end_mm = &many;
    refuse(&good, LR_USAGE, "an operator has fewer than 2^30 lines, not 1073741824");
    spoilt(lines->given.end_mm = NULL, refuse(&good, LR_USAGE, "lines need their starts and ends"));
    lines->given = given;
    spoilt(lines->given.tof_mm = &shorter, refuse(&good, LR_USAGE, "9 lines have 24 centres of time of flight"));
    lines->given = given;

    spoilt(params.kernel = LR_LISTMODE_EXACT, refuse(&params, LR_USAGE, "exact elements are of a scanner's crystals"));
    params = good;
    spoilt(params.factors = &factors, refuse(&params, LR_USAGE, "event_factors in place of factors"));
    params = good;
    params.columns = &(lr_event_columns){.count = 1};
    refuse(&params, LR_USAGE, "takes one of events, columns of events, and lines");
    spoilt(params.lines = NULL, refuse(&params, LR_USAGE, "needs LORs, a grid and events, or lines and a grid"));
    params.lors = lors_from(decagon(&usual_rules));
    refuse(&params, LR_USAGE, "columns of events need the crystals");
    params.columns = &(lr_event_columns){.count = 1, .crystals = (const int32_t[1][2]){{0, 120}}};
    refuse(&params, LR_BAD_INPUT, "event 0 names crystal 120");
}

case_main("cpu", set_up,
          CASES(test_axes, test_lengths, test_misses, test_bins_add_up, test_resolutions, test_times, test_reference,
                test_lines_of_crystals_are_events, test_factors, test_columns_are_binned, test_columns_in_blocks,
                test_ranges_add_up, test_sensitivity_of_others, test_reconstruction, test_ends_on_a_device,
                test_mistakes_are_told))
