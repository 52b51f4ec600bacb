/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Operators of lines given by their ends, and of events in columns, for the backend that argv[1] names: closed forms,
 * the adjoint law, events of a scanner, ranges, the sensitivity, and errors. The closed forms include the cases of
 * parallelproj's public tests: each axis in both directions, lines between voxels, lines beside the image, time of
 * flight. */
#include "operators.h"

#include <lr/events.h>
#include <lr/recon.h>

static const char *backend;
static lr_grid grid;

/* Lines with arrays of their own. */
struct lines {
    int64_t count;
    float (*start)[3], (*end)[3], *tof_mm;
    lr_vector vectors[3];
    lr_lines given;
};

/* Room for lines without time of flight. */
static void open_lines(struct lines *lines, int64_t count)
{
    *lines = (struct lines){.count = count};
    lines->start = calloc((size_t)count, sizeof(*lines->start));
    lines->end = calloc((size_t)count, sizeof(*lines->end));
    lines->tof_mm = calloc((size_t)count, sizeof(*lines->tof_mm));
    assert_true(lines->start != NULL && lines->end != NULL && lines->tof_mm != NULL);
    lines->vectors[0] = lr_vector_of_floats(lines->start[0], 3 * count);
    lines->vectors[1] = lr_vector_of_floats(lines->end[0], 3 * count);
    lines->vectors[2] = lr_vector_of_floats(lines->tof_mm, count);
    lines->given = (lr_lines){.start_mm = &lines->vectors[0], .end_mm = &lines->vectors[1]};
}

static void give_times(struct lines *lines, double resolution_ps, double bin_mm)
{
    lines->given.tof_mm = &lines->vectors[2];
    lines->given.tof_resolution_ps = resolution_ps;
    lines->given.tof_bin_mm = bin_mm;
}

static void close_lines(struct lines *lines)
{
    free(lines->start);
    free(lines->end);
    free(lines->tof_mm);
}

static lr_listmode_params params_of(const struct lines *lines, lr_listmode_kernel kernel)
{
    const char *const bytes = getenv("LR_TEST_MEMORY_BYTES");
    return (lr_listmode_params){.grid = &grid,
                                .lines = &lines->given,
                                .kernel = kernel,
                                .backend = backend,
                                .max_memory_bytes = bytes != NULL ? atoll(bytes) : 0,
                                .threads = 2,
                                .log = &test_log.log};
}

/* Not cubic, and off centre so that nothing is symmetric by chance. */
static int setup(void **state)
{
    grid = lr_grid_centred((const int[3]){28, 21, 18}, (const double[3]){4, 5, 6});
    grid.origin_mm[0] += 1.3;
    grid.origin_mm[1] -= 2.1;
    grid.origin_mm[2] += 0.7;
    return 0;
}

/* Lines in and around the grid, whose ends are outside it, inside, or on both sides of it; some miss it. */
static void draw_lines(struct lines *lines, uint64_t *seed)
{
    for (int64_t n = 0; n < lines->count; n++) {
        const double reach_mm = n % 3 == 0 ? 40 : 160;
        for (int k = 0; k < 3; k++) {
            lines->start[n][k] = (float)(reach_mm * (2.0 * test_random(seed) - 1.0));
            lines->end[n][k] = (float)(reach_mm * (2.0 * test_random(seed) - 1.0));
        }
        lines->tof_mm[n] = (float)(120.0 * test_random(seed) - 60.0);
    }
}

/* --- closed forms --- */

static double tolerance(void)
{
    return strcmp(backend, "cpu") == 0 ? 1e-12 : 2e-6;
}

/* The values of lines for an image; NULL = ones. The caller's to free. */
static double *values_on(const lr_listmode_params *params, const double *image)
{
    lr_operator *op = open_operator(params);
    double *ones = case_ones(lr_grid_num_voxels(&grid));
    double *values = case_doubles(lr_operator_get_info(op)->num_lors);
    forward(op, NULL, image != NULL ? image : ones, values);
    free(ones);
    lr_operator_destroy(op);
    return values;
}

static int64_t voxel_at(const int at[3])
{
    return ((int64_t)at[2] * grid.size[1] + at[1]) * grid.size[0] + at[0];
}

/* Sum over the row of voxels through `at` along an axis, times the voxel's edge. */
static double row_integral(const double *image, int axis, const int at[3])
{
    int here[3] = {at[0], at[1], at[2]};
    double sum = 0;
    for (here[axis] = 0; here[axis] < grid.size[axis]; here[axis]++) sum += image[voxel_at(here)];
    return sum * grid.voxel_mm[axis];
}

/* Lines along each axis, in both senses: through centres of voxels they see these alone, between two rows both by
 * half, and beside the image nothing. */
static void test_axes(void **state)
{
    enum { EACH = 3 };
    uint64_t seed = test_seed();
    struct lines lines;
    open_lines(&lines, (int64_t)3 * 2 * EACH);
    for (int64_t n = 0; n < lines.count; n++) {
        const int axis = (int)(n / (2 * EACH)), across = (axis + 1) % 3;
        const bool is_turned = n / EACH % 2 != 0;
        for (int k = 0; k < 3; k++) lines.start[n][k] = (float)(grid.origin_mm[k] + 7 * grid.voxel_mm[k]);
        if (n % EACH == 1) lines.start[n][across] += (float)(0.5 * grid.voxel_mm[across]);
        if (n % EACH == 2) lines.start[n][across] = 300;
        memcpy(lines.end[n], lines.start[n], sizeof(lines.end[n]));
        lines.start[n][axis] = is_turned ? 250 : -250;
        lines.end[n][axis] = -lines.start[n][axis];
    }
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    double *image = case_random(num_voxels, &seed);
    const lr_listmode_params params = params_of(&lines, LR_LISTMODE_LINE);
    double *values = values_on(&params, image);
    for (int64_t n = 0; n < lines.count; n++) {
        const int axis = (int)(n / (2 * EACH)), across = (axis + 1) % 3;
        int next[3] = {7, 7, 7};
        next[across]++;
        const double one = row_integral(image, axis, (const int[3]){7, 7, 7}), other = row_integral(image, axis, next);
        const double expected[EACH] = {one, 0.5 * (one + other), 0};
        assert_true(fabs(values[n] - expected[n % EACH]) < 3e-6 * one); /* ends are floats */
    }
    free(values);
    free(image);
    close_lines(&lines);
}

/* Ends inside the image, and oblique lines: the value for ones is the length of the line in the image. */
static void test_lengths(void **state)
{
    const float ends[6][2][3] = {{{-20, 3, 4}, {17.5f, 3, 4}},   {{0, -30.25f, -2}, {0, 11, -2}},
                                 {{1, 1, -31}, {1, 1, 29.75f}},  {{-20, -15, -10}, {21, 18, 13}},
                                 {{9, 8, 30}, {-8, -7, -25.5f}}, {{3, 2.25f, 1}, {3.5f, 2, 1.125f}}};
    const lr_listmode_kernel kernels[2] = {LR_LISTMODE_LINE, LR_LISTMODE_TUBE};
    struct lines lines;
    open_lines(&lines, 6);
    for (int n = 0; n < 6; n++) {
        memcpy(lines.start[n], ends[n][0], sizeof(lines.start[n]));
        memcpy(lines.end[n], ends[n][1], sizeof(lines.end[n]));
    }
    for (int kernel = 0; kernel < 2; kernel++) {
        lr_listmode_params params = params_of(&lines, kernels[kernel]);
        params.tube.fwhm_mm = 5;
        double *values = values_on(&params, NULL);
        for (int n = 0; n < 6; n++) {
            double square = 0;
            for (int k = 0; k < 3; k++) square += pow((double)ends[n][1][k] - (double)ends[n][0][k], 2);
            assert_close(values[n], sqrt(square), 2 * tolerance());
        }
        free(values);
    }

    /* A line from end to end of the grid along its axis crosses it by the extent over the cosine. */
    for (int n = 0; n < 6; n++) {
        const int axis = n % 3;
        for (int k = 0; k < 3; k++) {
            lines.start[n][k] = k == axis ? -150.0f : (float)(-5.0 - n);
            lines.end[n][k] = k == axis ? 150.0f : (float)(11.0 + n);
        }
    }
    const lr_listmode_params params = params_of(&lines, LR_LISTMODE_LINE);
    double *values = values_on(&params, NULL);
    for (int n = 0; n < 6; n++) {
        const int axis = n % 3;
        const double extent = grid.size[axis] * grid.voxel_mm[axis], lean = (16.0 + 2 * n) / 300.0;
        assert_close(values[n], extent * sqrt(1.0 + 2 * lean * lean), 2 * tolerance());
    }
    free(values);
    close_lines(&lines);
}

/* Lines beside the image, and lines that end before it, have the value 0 and no elements. */
static void test_misses(void **state)
{
    struct lines lines;
    open_lines(&lines, 4);
    const float ends[4][2][3] = {{{-200, 90, 0}, {200, 90, 0}},
                                 {{-200, 0, 0}, {-100, 0, 0}},
                                 {{0, -150, 150}, {0, 150, 150}},
                                 {{150, 150, -300}, {150, 150.5f, 300}}};
    const lr_listmode_kernel kernels[2] = {LR_LISTMODE_LINE, LR_LISTMODE_TUBE};
    for (int n = 0; n < 4; n++) {
        memcpy(lines.start[n], ends[n][0], sizeof(lines.start[n]));
        memcpy(lines.end[n], ends[n][1], sizeof(lines.end[n]));
    }
    for (int kernel = 0; kernel < 2; kernel++) {
        const lr_listmode_params params = params_of(&lines, kernels[kernel]);
        lr_operator *op = open_operator(&params);
        double *values = values_on(&params, NULL), *ones = case_ones(4);
        double *image = case_doubles(lr_grid_num_voxels(&grid));
        back(op, ones, image);
        for (int n = 0; n < 4; n++) assert_true(values[n] == 0);
        for (int64_t v = 0; v < lr_grid_num_voxels(&grid); v++) assert_true(image[v] == 0);
        lr_operator_destroy(op);
        free(values);
        free(ones);
        free(image);
    }
    close_lines(&lines);
}

/* The sum over bins times their width is the value without time of flight, whatever the width. */
static void test_bins_add_up(void **state)
{
    enum { LINES = 7, BINS = 61 };
    uint64_t seed = 5;
    const double bin_mm = 7.5;
    struct lines lines, each;
    open_lines(&lines, LINES);
    open_lines(&each, LINES * BINS);
    draw_lines(&lines, &seed);
    for (int64_t k = 0; k < each.count; k++) {
        memcpy(each.start[k], lines.start[k / BINS], sizeof(each.start[k]));
        memcpy(each.end[k], lines.end[k / BINS], sizeof(each.end[k]));
        each.tof_mm[k] = (float)((double)(k % BINS - BINS / 2) * bin_mm);
    }
    give_times(&each, 350, bin_mm);
    double *image = case_random(lr_grid_num_voxels(&grid), &seed);
    const lr_listmode_kernel kernels[2] = {LR_LISTMODE_LINE, LR_LISTMODE_TUBE};
    for (int kernel = 0; kernel < 2; kernel++) {
        const lr_listmode_params all = params_of(&lines, kernels[kernel]), binned = params_of(&each, kernels[kernel]);
        double *expected = values_on(&all, image), *values = values_on(&binned, image);
        for (int n = 0; n < LINES; n++) {
            double sum = 0;
            for (int bin = 0; bin < BINS; bin++) sum += bin_mm * values[n * BINS + bin];
            assert_true(fabs(sum - expected[n]) <= 2e-5 * fmax(expected[n], 1.0));
        }
        free(expected);
        free(values);
    }
    free(image);
    close_lines(&lines);
    close_lines(&each);
}

/* tof_mm is positive towards the end: a hot voxel there is seen at its place, with the Gaussian's density over the
 * voxel, and at the negative place of the line turned around. */
static void test_times(void **state)
{
    const double resolution_ps = 400, sigma = resolution_ps * 0.149896229 / 2.3548200450309493;
    const double held = erf(3.0 / sqrt(2.0));
    const int at[3] = {20, 8, 9};
    const double centre[3] = {grid.origin_mm[0] + 20 * grid.voxel_mm[0], grid.origin_mm[1] + 8 * grid.voxel_mm[1],
                              grid.origin_mm[2] + 9 * grid.voxel_mm[2]};
    struct lines lines;
    open_lines(&lines, 4);
    for (int n = 0; n < 4; n++) {
        const bool is_turned = n % 2 != 0;
        for (int k = 0; k < 3; k++) lines.start[n][k] = lines.end[n][k] = (float)centre[k];
        lines.start[n][0] = is_turned ? 210 : -150;
        lines.end[n][0] = is_turned ? -150 : 210;
        lines.tof_mm[n] = (float)((is_turned ? -1.0 : 1.0) * (n < 2 ? centre[0] - 30.0 : centre[0] - 30.0 - 25.0));
    }
    give_times(&lines, resolution_ps, 0);
    double *image = case_doubles(lr_grid_num_voxels(&grid));
    image[voxel_at(at)] = 1;
    const lr_listmode_params params = params_of(&lines, LR_LISTMODE_LINE);
    double *values = values_on(&params, image);
    for (int n = 0; n < 4; n++) {
        const double off = n < 2 ? 0.0 : 25.0, half = 0.5 * grid.voxel_mm[0];
        const double low = (off - half) / (sigma * sqrt(2.0)), high = (off + half) / (sigma * sqrt(2.0));
        assert_close(values[n], 0.5 * (erf(high) - erf(low)) / held, 3e-5); /* ends and places are floats */
    }
    free(values);
    free(image);
    close_lines(&lines);
}

/* --- laws --- */

static void check_adjoint(const lr_listmode_params *params, uint64_t *seed)
{
    lr_operator *op = open_operator(params);
    const lr_operator_info *info = lr_operator_get_info(op);
    double *x = case_random(info->num_voxels, seed), *y = case_random(info->num_lors, seed);
    double *to_values = case_doubles(info->num_lors), *to_image = case_doubles(info->num_voxels);
    forward(op, NULL, x, to_values);
    back(op, y, to_image);
    assert_close(case_dot(to_values, y, info->num_lors), case_dot(x, to_image, info->num_voxels), 1e-5);
    assert_true(case_dot(to_values, y, info->num_lors) > 0);
    free(x);
    free(y);
    free(to_values);
    free(to_image);
    lr_operator_destroy(op);
}

/* Each line has the values of an operator of all lines with its resolution. */
static void test_resolutions(void **state)
{
    enum { LINES = 60, RESOLUTIONS = 3 };
    static const float choices_ps[RESOLUTIONS] = {150, 330, 600};
    uint64_t seed = 7;
    struct lines lines;
    open_lines(&lines, LINES);
    draw_lines(&lines, &seed);
    double *image = case_random(lr_grid_num_voxels(&grid), &seed), *alike[RESOLUTIONS];
    float own_ps[LINES];
    for (int n = 0; n < LINES; n++) own_ps[n] = choices_ps[n % RESOLUTIONS];
    const lr_vector all_ps = lr_vector_of_floats(own_ps, LINES);
    for (int variant = 0; variant < 4; variant++) {
        const double bin_mm = variant % 2 ? 9 : 0;
        const lr_listmode_params params = params_of(&lines, variant / 2 ? LR_LISTMODE_TUBE : LR_LISTMODE_LINE);
        for (int k = 0; k < RESOLUTIONS; k++) {
            give_times(&lines, (double)choices_ps[k], bin_mm);
            alike[k] = values_on(&params, image);
        }
        give_times(&lines, 0, bin_mm);
        lines.given.tof_resolutions_ps = &all_ps;
        double *values = values_on(&params, image);
        for (int n = 0; n < LINES; n++) assert_close(values[n], alike[n % RESOLUTIONS][n], 1e-4);
        check_adjoint(&params, &seed);
        lines.given.tof_resolutions_ps = NULL;
        for (int k = 0; k < RESOLUTIONS; k++) free(alike[k]);
        free(values);
    }
    free(image);
    close_lines(&lines);
}

enum { VARIANTS = 6 };

static const lr_blobs blobs = {.radius_mm = 8, .alpha = 8};

/* Lines and tubes, without and with time of flight in bins and without bins, and blobs. */
static lr_listmode_params variant(struct lines *lines, int number)
{
    lines->given.tof_mm = NULL;
    if (number % 3 > 0) give_times(lines, 300, number % 3 == 1 ? 0 : 20);
    lr_listmode_params params = params_of(lines, number / 3 == 0 ? LR_LISTMODE_LINE : LR_LISTMODE_TUBE);
    return params;
}

static void test_adjoint(void **state)
{
    uint64_t seed = test_seed();
    struct lines lines;
    open_lines(&lines, 1500);
    draw_lines(&lines, &seed);
    for (int k = 0; k < VARIANTS; k++) {
        const lr_listmode_params params = variant(&lines, k);
        check_adjoint(&params, &seed);
    }
    lr_listmode_params params = variant(&lines, 1);
    params.blobs = &blobs;
    check_adjoint(&params, &seed);
    close_lines(&lines);
}

/* Every backend has the values of the reference, in the caller's order, also where its device has no room for all
 * lines at once. */
static void test_reference(void **state)
{
    uint64_t seed = test_seed();
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    struct lines lines;
    open_lines(&lines, 1500);
    draw_lines(&lines, &seed);
    double *x = case_random(num_voxels, &seed), *y = case_random(lines.count, &seed);
    for (int k = 0; k < VARIANTS; k++) {
        double *values[3], *images[3];
        for (int n = 0; n < 3; n++) {
            lr_listmode_params params = variant(&lines, k);
            params.backend = n == 0 ? "cpu" : backend;
            params.num_ranges = n == 0 ? 1 : 3;
            if (n == 2) params.max_memory_bytes = 1;
            lr_operator *op = open_operator(&params);
            values[n] = case_doubles(lines.count);
            images[n] = case_doubles(num_voxels);
            forward(op, NULL, x, values[n]);
            back(op, y, images[n]);
            lr_operator_destroy(op);
        }
        for (int n = 1; n < 3; n++) {
            assert_true(case_difference(values[n], values[0], lines.count) < 1e-5);
            assert_true(case_difference(images[n], images[0], num_voxels) < 1e-5);
        }
        for (int n = 0; n < 3; n++) {
            free(values[n]);
            free(images[n]);
        }
    }
    free(x);
    free(y);
    close_lines(&lines);
}

/* --- a scanner's events --- */

struct measured {
    lr_scanner *scanner;
    lr_lors *lors;
    int64_t count;
    lr_event *events;
    int32_t (*crystals)[2];
    float *tof_mm, *weights;
    double *times_s;
    bool *is_delayed;
    double (*ends[2])[3];
};

static void open_measured(struct measured *of, uint64_t *seed)
{
    *of = (struct measured){.scanner = decagon(), .count = 900};
    const size_t count = (size_t)of->count;
    of->lors = lr_lors_create(of->scanner, NULL);
    of->events = calloc(count, sizeof(*of->events));
    of->crystals = calloc(count, sizeof(*of->crystals));
    of->tof_mm = calloc(count, sizeof(*of->tof_mm));
    of->weights = calloc(count, sizeof(*of->weights));
    of->times_s = calloc(count, sizeof(*of->times_s));
    of->is_delayed = calloc(count, sizeof(*of->is_delayed));
    for (int k = 0; k < 2; k++) of->ends[k] = calloc(count, sizeof(*of->ends[k]));
    for (int64_t n = 0; n < of->count; n++) {
        int64_t lor = (int64_t)(test_random(seed) * (double)of->lors->count);
        while (!lr_lors_in_coincidence(of->lors, lor)) lor = (lor + 1) % of->lors->count;
        of->events[n] = event_of(of->lors, lor, n % 2 != 0);
        of->times_s[n] = 0.25 * (double)n;
        of->weights[n] = (float)(1 + n % 3);
        of->is_delayed[n] = n % 5 == 0;
        of->tof_mm[n] = (float)(60.0 * test_random(seed) - 30.0);
        of->events[n].tof_mm = of->tof_mm[n];
        of->events[n].weight = of->weights[n];
        for (int k = 0; k < 2; k++) {
            of->crystals[n][k] = of->events[n].crystals[k];
            lr_scanner_hit_centre(of->scanner, of->crystals[n][k], of->ends[k][n]);
        }
    }
}

static lr_event_columns columns_of(const struct measured *of)
{
    return (lr_event_columns){.count = of->count,
                              .crystals = (const int32_t(*)[2])of->crystals,
                              .tof_mm = of->tof_mm,
                              .weights = of->weights,
                              .times_s = of->times_s,
                              .is_delayed = of->is_delayed};
}

static void close_measured(struct measured *of)
{
    lr_lors_destroy(of->lors);
    lr_scanner_destroy(of->scanner);
    free(of->events);
    free(of->crystals);
    free(of->tof_mm);
    free(of->weights);
    free(of->times_s);
    free(of->is_delayed);
    free(of->ends[0]);
    free(of->ends[1]);
}

/* Checks that two operators have the same values and back-projections. */
static void check_alike(const lr_listmode_params *one, const lr_listmode_params *other, double most)
{
    uint64_t seed = 11;
    double *values[2], *images[2];
    double *x = case_random(lr_grid_num_voxels(&grid), &seed);
    int64_t count = 0;
    for (int n = 0; n < 2; n++) {
        lr_operator *op = open_operator(n == 0 ? one : other);
        count = lr_operator_get_info(op)->num_lors;
        values[n] = case_doubles(count);
        images[n] = case_doubles(lr_grid_num_voxels(&grid));
        forward(op, NULL, x, values[n]);
        back(op, values[0], images[n]);
        lr_operator_destroy(op);
    }
    assert_true(case_difference(values[1], values[0], count) <= most);
    assert_true(case_difference(images[1], images[0], lr_grid_num_voxels(&grid)) <= most);
    for (int n = 0; n < 2; n++) {
        free(values[n]);
        free(images[n]);
    }
    free(x);
}

/* Lines between the centres of crystals are those events, and columns are those events, too. Sums of floats may run
 * in another order. */
static void test_lines_of_crystals_are_events(void **state)
{
    uint64_t seed = test_seed();
    struct measured of;
    open_measured(&of, &seed);
    const lr_vector ends[2] = {lr_vector_of_doubles(of.ends[0][0], 3 * of.count),
                               lr_vector_of_doubles(of.ends[1][0], 3 * of.count)};
    const lr_vector times = lr_vector_of_floats(of.tof_mm, of.count);
    const lr_event_columns columns = columns_of(&of);
    for (int has_tof = 0; has_tof < 2; has_tof++) {
        const lr_events_info info = {.has_tof = true, .tof_resolution_ps = 250, .tof_bin_mm = 12};
        const lr_lines lines = {.start_mm = &ends[0],
                                .end_mm = &ends[1],
                                .tof_mm = has_tof ? &times : NULL,
                                .tof_resolution_ps = 250,
                                .tof_bin_mm = 12};
        lr_listmode_params of_events = {.lors = of.lors,
                                        .grid = &grid,
                                        .events = of.events,
                                        .count = of.count,
                                        .tube = {.fwhm_mm = 6},
                                        .num_ranges = 2,
                                        .info = has_tof ? &info : NULL,
                                        .backend = backend,
                                        .threads = 2,
                                        .log = &test_log.log};
        lr_listmode_params of_lines = of_events, of_columns = of_events;
        of_lines.events = of_columns.events = NULL;
        of_lines.count = of_columns.count = 0;
        of_lines.lors = NULL;
        of_lines.info = NULL;
        of_lines.lines = &lines;
        of_columns.columns = &columns;
        check_alike(&of_events, &of_lines, 1e-6);
        check_alike(&of_events, &of_columns, 1e-6);
        of_events.kernel = of_columns.kernel = LR_LISTMODE_EXACT;
        if (has_tof) check_alike(&of_events, &of_columns, 1e-6);
    }
    close_measured(&of);
}

static lr_status get_factors(void *user, const lr_lor_span *span, float *values)
{
    (void)user;
    for (int64_t k = 0; k < span->count; k++)
        values[k] = 0.5f + 1e-3f * (float)((span->numbers != NULL ? span->numbers[k] : span->first + k) % 1000);
    return LR_OK;
}

/* Factors of LORs reach events in columns, and those of lines are given one by one. */
static void test_factors(void **state)
{
    uint64_t seed = test_seed();
    struct measured of;
    open_measured(&of, &seed);
    const lr_event_columns columns = columns_of(&of);
    const lr_lor_source factors = {get_factors, NULL};
    lr_listmode_params of_events = {.lors = of.lors,
                                    .grid = &grid,
                                    .events = of.events,
                                    .count = of.count,
                                    .factors = &factors,
                                    .backend = backend,
                                    .threads = 2,
                                    .log = &test_log.log};
    lr_listmode_params of_columns = of_events, of_lines = of_events;
    of_columns.events = NULL;
    of_columns.columns = &columns;
    check_alike(&of_events, &of_columns, 1e-6);

    const lr_vector ends[2] = {lr_vector_of_doubles(of.ends[0][0], 3 * of.count),
                               lr_vector_of_doubles(of.ends[1][0], 3 * of.count)};
    const lr_lines lines = {.start_mm = &ends[0], .end_mm = &ends[1]};
    int64_t *numbers = calloc((size_t)of.count, sizeof(*numbers));
    float *each = calloc((size_t)of.count, sizeof(*each));
    assert_true(numbers != NULL && each != NULL);
    lr_events_lors(of.lors, &(lr_event_span){of.events, of.count, 1}, numbers);
    for (int64_t n = 0; n < of.count; n++)
        assert_int_equal(get_factors(NULL, &(lr_lor_span){.numbers = &numbers[n], .count = 1}, &each[n]), LR_OK);
    of_lines.events = NULL;
    of_lines.factors = NULL;
    of_lines.lines = &lines;
    of_lines.event_factors = each;
    of_events.tube.fwhm_mm = of_lines.tube.fwhm_mm = 6; /* lines have no crystals to take it from */
    check_alike(&of_events, &of_lines, 1e-6);
    free(numbers);
    free(each);
    close_measured(&of);
}

/* Columns give the counts per LOR of their events, prompts and delayeds apart. */
static void test_columns_are_binned(void **state)
{
    uint64_t seed = test_seed();
    struct measured of;
    open_measured(&of, &seed);
    of.crystals[3][1] = of.crystals[3][0] + (of.crystals[3][0] % 12 < 11 ? 1 : -1); /* of the same module */
    const lr_event_columns columns = columns_of(&of);
    lr_prompts_delayeds data;
    test_log_init(&test_log);
    assert_int_equal(lr_events_bin_columns(&columns, of.lors, &data, &test_log.log), LR_OK);
    const lr_lor_data *const both[2] = {data.prompts, data.delayeds};
    double *sums[2] = {case_doubles(of.lors->count), case_doubles(of.lors->count)};
    for (int64_t n = 0; n < of.count; n++) {
        if (n != 3)
            sums[of.is_delayed[n]][lr_lors_number(of.lors, of.crystals[n][0], of.crystals[n][1])] +=
                (double)of.weights[n];
    }
    for (int k = 0; k < 2; k++) {
        for (int64_t n = 0; n < both[k]->count; n++)
            sums[k][both[k]->index != NULL ? both[k]->index[n] : n] -= (double)both[k]->values[n];
        for (int64_t lor = 0; lor < of.lors->count; lor++) assert_true(sums[k][lor] == 0);
        free(sums[k]);
    }
    assert_int_equal(data.counts.prompts + data.counts.delayeds, of.count);
    assert_int_equal(data.counts.delayeds, (of.count + 4) / 5);
    assert_int_equal(data.counts.not_in_coincidence, 1);
    lr_lor_data_destroy(data.prompts);
    lr_lor_data_destroy(data.delayeds);

    of.crystals[7][0] = of.scanner->num_crystals;
    assert_int_equal(lr_events_bin_columns(&columns, of.lors, &data, &test_log.log), LR_BAD_INPUT);
    assert_non_null(strstr(test_log.error, "event 7 names crystal 120: the scanner has crystals 0 to 119"));
    assert_null(data.prompts);
    of.crystals[7][0] = 0;
    of.times_s[5] = -1;
    assert_int_equal(lr_events_bin_columns(&columns, of.lors, &data, &test_log.log), LR_BAD_INPUT);
    assert_non_null(strstr(test_log.error, "event 5 has a time of -1 s"));
    close_measured(&of);
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

/* Columns that are left out have the defaults of an event; blocks follow each other. */
static void test_columns_in_blocks(void **state)
{
    enum { COUNT = (1 << 17) + 3 };
    int32_t(*crystals)[2] = calloc(COUNT, sizeof(*crystals));
    double *times_s = case_doubles(COUNT);
    assert_non_null(crystals);
    for (int k = 0; k < COUNT; k++) {
        crystals[k][1] = k;
        times_s[k] = (k + 0.25) / 2000.0;
    }
    const lr_event_columns columns = {.count = COUNT, .crystals = (const int32_t(*)[2])crystals, .times_s = times_s};
    struct heard heard = {.columns = &columns};
    const lr_event_sink sink = {.take = hear, .user = &heard};
    assert_int_equal(lr_events_from_columns(&columns, &sink, NULL), LR_OK);
    assert_int_equal(heard.count, COUNT);
    const lr_event_columns none = {.count = 3};
    assert_int_equal(lr_events_from_columns(&none, &sink, NULL), LR_USAGE);
    free(times_s);
    free(crystals);
}

/* --- ranges and sensitivity --- */

/* Ranges are parts of the whole, in the caller's order; the sensitivity of a part is A^T 1 of its lines. */
static void test_ranges_add_up(void **state)
{
    uint64_t seed = test_seed();
    const int64_t num_voxels = lr_grid_num_voxels(&grid), bounds[4] = {0, 200, 550, 800};
    struct lines lines;
    open_lines(&lines, 800);
    draw_lines(&lines, &seed);
    give_times(&lines, 300, 0);
    float *factors = calloc(800, sizeof(*factors));
    assert_non_null(factors);
    for (int n = 0; n < 800; n++) factors[n] = (float)(0.5 + test_random(&seed));
    lr_listmode_params params = params_of(&lines, LR_LISTMODE_LINE);
    params.ranges = bounds;
    params.num_ranges = 3;
    params.event_factors = factors;
    lr_operator *op = open_operator(&params);
    double *x = case_random(num_voxels, &seed), *ones = case_ones(800);
    double *whole = case_doubles(800), *expected = case_doubles(num_voxels);
    double *sum = case_doubles(num_voxels), *one = case_doubles(num_voxels);
    forward(op, NULL, x, whole);
    back(op, ones, expected);
    for (int32_t r = 0; r < 3; r++) {
        const lr_selection part = {.pairs = &r, .num_pairs = 1};
        double *values = case_doubles(bounds[r + 1] - bounds[r]);
        forward(op, &part, x, values);
        for (int64_t n = bounds[r]; n < bounds[r + 1]; n++)
            assert_true(fabs(values[n - bounds[r]] - whole[n]) <= 1e-6 * fmax(whole[n], 1e-3));
        free(values);
        lr_vector image = lr_vector_of_doubles(one, num_voxels);
        assert_int_equal(lr_operator_sensitivity(op, &part, &image), LR_OK);
        for (int64_t v = 0; v < num_voxels; v++) sum[v] += one[v];
    }
    lr_vector image = lr_vector_of_doubles(one, num_voxels);
    assert_int_equal(lr_operator_sensitivity(op, NULL, &image), LR_OK);
    assert_true(case_difference(one, expected, num_voxels) < 1e-6);
    assert_true(case_difference(sum, expected, num_voxels) < 1e-6);
    assert_true(lr_operator_get_info(op)->of_events && lr_listmode_get_info(op)->count == 800);

    /* Other lines with the sensitivity of these have the share of their own part. */
    struct lines few;
    open_lines(&few, 10);
    draw_lines(&few, &seed);
    lr_listmode_params of_few = params_of(&few, LR_LISTMODE_LINE);
    of_few.num_ranges = 5;
    of_few.sensitivity_of = op;
    lr_operator *other = open_operator(&of_few);
    const lr_selection two = {.pairs = (const int32_t[2]){0, 3}, .num_pairs = 2};
    assert_int_equal(lr_operator_sensitivity(other, &two, &image), LR_OK);
    for (int64_t v = 0; v < num_voxels; v++) sum[v] = 0.4 * expected[v];
    assert_true(case_difference(one, sum, num_voxels) < 1e-6);
    lr_operator_destroy(other);
    lr_operator_destroy(op);
    close_lines(&few);
    close_lines(&lines);
    free(factors);
    free(x);
    free(ones);
    free(whole);
    free(expected);
    free(sum);
    free(one);
}

/* Lines take the sensitivity of a scanner's LORs where they name it, and a scanner's events that of lines. */
static void test_sensitivity_of_others(void **state)
{
    uint64_t seed = test_seed();
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    struct lines lines;
    struct measured of;
    open_lines(&lines, 40);
    draw_lines(&lines, &seed);
    open_measured(&of, &seed);
    lr_listmode_params of_lines = params_of(&lines, LR_LISTMODE_TUBE);
    lr_listmode_params of_events = of_lines;
    of_lines.tube.fwhm_mm = of_events.tube.fwhm_mm = 6;
    of_events.lines = NULL;
    of_events.lors = of.lors;
    of_events.events = of.events;
    of_events.count = of.count;
    double *images[2] = {case_doubles(num_voxels), case_doubles(num_voxels)};
    for (int k = 0; k < 2; k++) {
        lr_operator *one = open_operator(k == 0 ? &of_events : &of_lines);
        lr_listmode_params naming = k == 0 ? of_lines : of_events;
        naming.sensitivity_of = one;
        lr_operator *other = open_operator(&naming);
        for (int n = 1; n >= 0; n--) { /* the one that names it is asked first */
            lr_vector image = lr_vector_of_doubles(images[n], num_voxels);
            assert_int_equal(lr_operator_sensitivity(n == 0 ? one : other, NULL, &image), LR_OK);
        }
        assert_int_equal(lr_operator_get_info(one)->of_lines, k == 1);
        assert_false(lr_operator_get_info(other)->of_lines);
        for (int64_t v = 0; v < num_voxels; v++) assert_true(images[0][v] == images[1][v]);
        assert_true(case_dot(images[0], images[0], num_voxels) > 0);
        lr_operator_destroy(other);
        lr_operator_destroy(one);
    }
    free(images[0]);
    free(images[1]);
    close_measured(&of);
    close_lines(&lines);
}

/* Data of lines reconstruct to an image that explains them: MLEM with A^T 1 keeps the counts. */
static void test_reconstruction(void **state)
{
    uint64_t seed = test_seed();
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    struct lines lines;
    open_lines(&lines, 3000);
    draw_lines(&lines, &seed);
    lr_listmode_params params = params_of(&lines, LR_LISTMODE_TUBE);
    params.num_ranges = 2;
    lr_operator *op = open_operator(&params);
    double *x = case_random(num_voxels, &seed), *measured = case_doubles(lines.count);
    double *estimated = case_doubles(lines.count), *image = case_doubles(num_voxels);
    forward(op, NULL, x, measured);
    double sum = 0;
    for (int64_t n = 0; n < lines.count; n++) sum += measured[n];
    const lr_vector data = lr_vector_of_doubles(measured, lines.count);
    lr_vector to = lr_vector_of_doubles(image, num_voxels);
    const lr_recon_params recon = {.op = op, .data = &data, .iterations = 20, .log = &test_log.log};
    if (lr_recon(&recon, &to) != LR_OK) fail_msg("%s", test_log.error);
    forward(op, NULL, image, estimated);
    double total = 0;
    for (int64_t n = 0; n < lines.count; n++) total += estimated[n];
    assert_close(total, sum, 1e-4);
    assert_true(case_difference(estimated, measured, lines.count) < 0.05);
    lr_operator_destroy(op);

    /* An operator whose sensitivities have not been asked for. */
    op = open_operator(&params);
    const lr_recon_params in_place = {.data = &data, .iterations = 3, .subsets = 2};
    lr_recon_params elsewhere = in_place;
    elsewhere.op = op;
    reconstruct_in_place(op, &in_place, x);
    if (lr_recon(&elsewhere, &to) != LR_OK) fail_msg("%s", test_log.error);
    assert_true(case_difference(x, image, num_voxels) < 1e-5);
    lr_operator_destroy(op);
    free(x);
    free(measured);
    free(estimated);
    free(image);
    close_lines(&lines);
}

/* Ends and times in the memory of the backend's device are copied to the host once, and counted. */
static void test_ends_on_a_device(void **state)
{
    const bool is_gl = strcmp(backend, "compute") == 0;
    if (!is_gl && strcmp(backend, "cuda") != 0) return; /* a backend on the host */
    uint64_t seed = test_seed();
    struct lines lines;
    open_lines(&lines, 100);
    draw_lines(&lines, &seed);
    give_times(&lines, 300, 0);
    lr_place *place =
        lr_place_open(&(lr_place_params){.kind = is_gl ? LR_PLACE_GL : LR_PLACE_CUDA, .log = &test_log.log});
    assert_non_null(place);
    lr_vector there[3];
    for (int k = 0; k < 3; k++) {
        const lr_vector_params like = {.place = place, .count = lines.vectors[k].count};
        assert_int_equal(lr_vector_create(&like, &there[k]), LR_OK);
        assert_int_equal(lr_vector_copy(&lines.vectors[k], &there[k]), LR_OK);
    }
    const lr_lines given = {.start_mm = &there[0], .end_mm = &there[1], .tof_mm = &there[2], .tof_resolution_ps = 300};
    const lr_listmode_params here = params_of(&lines, LR_LISTMODE_LINE);
    lr_listmode_params elsewhere = here;
    elsewhere.lines = &given;
    const int64_t before = lr_place_get_info(place).traffic.to_host;
    lr_operator *op = open_operator(&elsewhere);
    assert_int_equal(lr_place_get_info(place).traffic.to_host - before, 100 * 7 * 4);
    lr_operator_destroy(op);
    check_alike(&here, &elsewhere, 1e-6);
    for (int k = 0; k < 3; k++) lr_vector_destroy(&there[k]);
    lr_place_close(place);
    close_lines(&lines);
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
    uint64_t seed = 3;
    struct lines lines;
    open_lines(&lines, 9);
    draw_lines(&lines, &seed);
    const lr_listmode_params good = params_of(&lines, LR_LISTMODE_LINE);
    lr_listmode_params params = good;
    const lr_lines given = lines.given;

    memcpy(lines.end[4], lines.start[4], sizeof(lines.end[4]));
    expect_refusal(&good, LR_BAD_INPUT, "line 4 goes from (");
    lines.end[4][1] = NAN;
    expect_refusal(&good, LR_BAD_INPUT, "line 4 goes from (");
    lines.end[4][1] = INFINITY;
    expect_refusal(&good, LR_BAD_INPUT, "line 4 goes from (");
    lines.end[4][1] = -300;
    give_times(&lines, 300, 0);
    lines.tof_mm[6] = NAN;
    expect_refusal(&good, LR_BAD_INPUT, "line 6 has a time of flight of nan mm");
    lines.given.tof_resolution_ps = 0;
    expect_refusal(&good, LR_USAGE, "need its resolution in ps FWHM");
    float own_ps[9] = {300, 250, -1, 300, 300, 300, 300, 300, 300};
    lr_vector resolutions = lr_vector_of_floats(own_ps, 9);
    lines.given.tof_resolutions_ps = &resolutions;
    expect_refusal(&good, LR_BAD_INPUT, "line 2 has a time of flight with a resolution of -1 ps");
    resolutions.count = 8;
    expect_refusal(&good, LR_USAGE, "9 lines have 8 resolutions of time of flight");

    lines.given = given;
    const lr_vector shorter = lr_vector_part(&lines.vectors[1], 0, 24);
    lines.given.end_mm = &shorter;
    expect_refusal(&good, LR_USAGE, "27 numbers for their starts and 24 for their ends");
    const lr_vector many = lr_vector_of_floats(lines.start[0], INT64_C(3) << 30); /* only counted */
    lines.given.start_mm = lines.given.end_mm = &many;
    expect_refusal(&good, LR_USAGE, "an operator has fewer than 2^30 lines, not 1073741824");
    lines.given.end_mm = NULL;
    expect_refusal(&good, LR_USAGE, "lines need their starts and ends");
    lines.given = given;
    lines.given.tof_mm = &shorter;
    expect_refusal(&good, LR_USAGE, "9 lines have 24 centres of time of flight");
    lines.given = given;

    params.kernel = LR_LISTMODE_EXACT;
    expect_refusal(&params, LR_USAGE, "exact elements are of a scanner's crystals");
    params = good;
    params.factors = &(lr_lor_source){get_factors, NULL};
    expect_refusal(&params, LR_USAGE, "event_factors in place of factors");
    params = good;
    params.columns = &(lr_event_columns){.count = 1};
    expect_refusal(&params, LR_USAGE, "takes one of events, columns of events, and lines");
    params.lines = NULL;
    expect_refusal(&params, LR_USAGE, "needs LORs, a grid and events, or lines and a grid");
    lr_scanner *scanner = decagon();
    lr_lors *lors = lr_lors_create(scanner, NULL);
    params.lors = lors;
    expect_refusal(&params, LR_USAGE, "columns of events need the crystals");
    params.columns = &(lr_event_columns){.count = 1, .crystals = (const int32_t[1][2]){{0, 120}}};
    expect_refusal(&params, LR_BAD_INPUT, "event 0 names crystal 120");
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    close_lines(&lines);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_misses),
        cmocka_unit_test(test_bins_add_up),
        cmocka_unit_test(test_resolutions),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_adjoint),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_lines_of_crystals_are_events),
        cmocka_unit_test(test_factors),
        cmocka_unit_test(test_columns_are_binned),
        cmocka_unit_test(test_columns_in_blocks),
        cmocka_unit_test(test_ranges_add_up),
        cmocka_unit_test(test_sensitivity_of_others),
        cmocka_unit_test(test_reconstruction),
        cmocka_unit_test(test_ends_on_a_device),
        cmocka_unit_test(test_mistakes_are_told),
    };
    backend = argc > 1 ? argv[1] : "cpu";
    if (lacks_device(backend)) return 77;
    return cmocka_run_group_tests(tests, setup, NULL);
}
