/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The exact kernel of list mode, for the backend that argv[1] names, against the family correspondence LOR by LOR,
 * against closed forms, and against sums over bins of time of flight. */
#include "operators.h"

#define PI 3.14159265358979323846

enum { COUNT = 600 };

static const char *backend;
static lr_scanner *ring, *wide_ring, *panels, *stack;
static lr_lors *ring_lors, *wide_lors, *panel_lors, *stack_lors;

/* Elements of devices are in single precision, about 1e-6 of the largest ones. */
static bool is_single(void)
{
    return strcmp(backend, "compute") == 0 || strcmp(backend, "cuda") == 0;
}

/* --- scanners --- */

static lr_scanner *make_ring(void)
{
    static const int crystals[2] = {4, 3};
    const lr_ring params = {.radius_mm = 60,
                            .modules = 10,
                            .block_crystals = {&crystals[0], &crystals[1]},
                            .pitch_mm = {5, 5},
                            .face_mm = {4.2, 4.6},
                            .depth_mm = 10};
    return lr_scanner_create_ring(&(lr_scanner_params){.name = "decagon", .coincidence = {.min_module_difference = 3}},
                                  &params);
}

/* Crystals are as small beside lines as those of clinical scanners. */
static lr_scanner *make_wide_ring(void)
{
    static const int crystals[2] = {8, 9};
    const lr_ring params = {.radius_mm = 200,
                            .modules = 24,
                            .block_crystals = {&crystals[0], &crystals[1]},
                            .pitch_mm = {6, 5},
                            .face_mm = {5.6, 4.9},
                            .depth_mm = 20};
    return lr_scanner_create_ring(
        &(lr_scanner_params){.name = "wide ring", .coincidence = {.min_module_difference = 5}}, &params);
}

/* Panels at x = -80 and 80, of 8 x 8 crystals of 6 mm, and one that leans above them; a fourth stands
 * between the first two where it is asked for, and hides parts of them. */
static lr_scanner *make_panels(bool with_stack)
{
    const double lean = 0.35;
    lr_module modules[4] = {
        {.centre_mm = {-80, 0, 0}, .u = {0, 1, 0}, .v = {0, 0, 1}},
        {.centre_mm = {80, 3, -2}, .u = {0, 1, 0}, .v = {0, 0, 1}},
        {.centre_mm = {5, 90, 4}, .u = {cos(lean), sin(lean), 0}, .v = {-0.3 * sin(lean), 0.3 * cos(lean), sqrt(0.91)}},
        {.centre_mm = {50, -20, 5}, .u = {0, 1, 0}, .v = {0, 0, 1}},
    };
    for (int m = 0; m < 4; m++) {
        modules[m].crystals[0] = modules[m].crystals[1] = m < 3 ? 8 : 4;
        for (int k = 0; k < 2; k++) {
            modules[m].pitch_mm[k] = 6;
            modules[m].face_mm[k] = k == 0 ? 5.4 : 6;
        }
        modules[m].depth_mm = 5;
    }
    return lr_scanner_create(&(lr_scanner_params){
        .name = with_stack ? "stack" : "panels", .modules = modules, .num_modules = with_stack ? 4 : 3});
}

static int setup(void **state)
{
    ring = make_ring();
    wide_ring = make_wide_ring();
    panels = make_panels(false);
    stack = make_panels(true);
    ring_lors = lr_lors_create(ring, NULL);
    wide_lors = lr_lors_create(wide_ring, NULL);
    panel_lors = lr_lors_create(panels, NULL);
    stack_lors = lr_lors_create(stack, NULL);
    assert_true(ring_lors != NULL && wide_lors != NULL && panel_lors != NULL && stack_lors != NULL);
    return 0;
}

static int teardown(void **state)
{
    lr_lors_destroy(ring_lors);
    lr_lors_destroy(wide_lors);
    lr_lors_destroy(panel_lors);
    lr_lors_destroy(stack_lors);
    lr_scanner_destroy(ring);
    lr_scanner_destroy(wide_ring);
    lr_scanner_destroy(panels);
    lr_scanner_destroy(stack);
    return 0;
}

static lr_grid ring_grid(void)
{
    lr_grid grid = lr_grid_centred((const int[3]){17, 14, 5}, (const double[3]){5, 6, 3.5});
    grid.origin_mm[0] += 0.7;
    grid.origin_mm[1] -= 1.1;
    return grid;
}

static lr_grid wide_grid(void)
{
    lr_grid grid = lr_grid_centred((const int[3]){17, 15, 7}, (const double[3]){14, 16, 9});
    grid.origin_mm[0] += 0.3;
    grid.origin_mm[1] -= 1.7;
    return grid;
}

static lr_grid panel_grid(void)
{
    lr_grid grid = lr_grid_centred((const int[3]){11, 12, 9}, (const double[3]){6, 5, 7});
    grid.origin_mm[2] += 1.3;
    return grid;
}

/* --- operators --- */

/* Random LORs in coincidence, ascending and without repeats, and an event of each in either order. */
static int64_t draw(const lr_lors *lors, int64_t count, lr_event *events, int64_t *numbers)
{
    uint64_t seed = test_seed();
    int64_t drawn = 0;
    for (int64_t k = 0; k < count; k++) {
        const double at = ((double)k + test_random(&seed)) * (double)lors->count / (double)count;
        const int64_t lor = (int64_t)at;
        const bool is_new = drawn == 0 || numbers[drawn - 1] < lor;
        if (is_new && lr_lors_in_coincidence(lors, lor)) {
            numbers[drawn] = lor;
            events[drawn++] = event_of(lors, lor, test_random(&seed) < 0.5);
        }
    }
    assert_true(drawn > count / 4);
    return drawn;
}

static lr_listmode_params params_of(const lr_lors *lors, const lr_grid *grid, const lr_event *events, int64_t count)
{
    return (lr_listmode_params){.lors = lors,
                                .grid = grid,
                                .events = events,
                                .count = count,
                                .kernel = LR_LISTMODE_EXACT,
                                .samples = {2, 1, 3},
                                .backend = backend,
                                .threads = 2,
                                .log = &test_log.log};
}

/* The reference: exact mode of the family correspondence, in double. */
static lr_operator *open_lors(const lr_lors *lors, const lr_grid *grid)
{
    test_log_init(&test_log);
    lr_operator *op = lr_operator_create(&(lr_operator_params){.lors = lors,
                                                               .grid = grid,
                                                               .mode = LR_MODE_EXACT,
                                                               .samples = {2, 1, 3},
                                                               .backend = "cpu",
                                                               .threads = 2,
                                                               .store = LR_STORE_NO,
                                                               .log = &test_log.log});
    if (op == NULL) fail_msg("%s", test_log.error);
    return op;
}

/* --- the elements are those of the family correspondence --- */

static void check_against_lors(const lr_lors *lors, const lr_grid *grid)
{
    const int64_t num_voxels = lr_grid_num_voxels(grid);
    lr_event *events = calloc(COUNT, sizeof(*events));
    int64_t *numbers = calloc(COUNT, sizeof(*numbers));
    const int64_t count = draw(lors, COUNT, events, numbers);
    const lr_listmode_params params = params_of(lors, grid, events, count);
    const lr_selection part = {.lors = numbers, .num_lors = count};
    uint64_t seed = 5;
    double *image = case_random(num_voxels, &seed), *found = case_doubles(count), *expected = case_doubles(count);
    lr_operator *op = open_operator(&params);
    forward(op, NULL, image, found);
    lr_operator_destroy(op);
    op = open_lors(lors, grid);
    forward(op, &part, image, expected);
    lr_operator_destroy(op);
    const double rms = sqrt(case_dot(expected, expected, count) / (double)count);
    double worst = 0;
    int64_t seen = 0;
    for (int64_t k = 0; k < count; k++) {
        worst = fmax(worst, fabs(found[k] - expected[k]) / rms);
        seen += expected[k] > 0;
    }
    print_message("%lld of %lld LORs see the grid; the worst is off by %.2g rms\n", (long long)seen, (long long)count,
                  worst);
    assert_true(seen > count / 8);
    assert_true(worst < (is_single() ? 1e-5 : 1e-6));
    free(events);
    free(numbers);
    free(image);
    free(found);
    free(expected);
}

static void test_events_have_the_elements_of_their_lors(void **state)
{
    const lr_grid around = ring_grid(), within = wide_grid(), between = panel_grid();
    check_against_lors(ring_lors, &around);
    check_against_lors(wide_lors, &within);
    check_against_lors(panel_lors, &between);
    if (strcmp(backend, "cpu") == 0) check_against_lors(stack_lors, &between);
}

static void test_sensitivity_is_that_of_the_lors(void **state)
{
    const lr_grid grid = ring_grid();
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    double *found = case_doubles(num_voxels), *expected = case_doubles(num_voxels);
    lr_vector image = lr_vector_of_doubles(found, num_voxels);
    const lr_event event = event_of(ring_lors, ring_lors->count / 2, false);
    const lr_listmode_params params = params_of(ring_lors, &grid, &event, 1);
    lr_operator *op = open_operator(&params);
    assert_int_equal(lr_operator_sensitivity(op, NULL, &image), LR_OK);
    lr_operator_destroy(op);
    op = open_lors(ring_lors, &grid);
    image = lr_vector_of_doubles(expected, num_voxels);
    assert_int_equal(lr_operator_sensitivity(op, NULL, &image), LR_OK);
    lr_operator_destroy(op);
    assert_true(case_difference(found, expected, num_voxels) < 1e-5);
    for (int64_t v = 0; v < num_voxels; v++) assert_close(found[v], expected[v], 1e-5);
    free(found);
    free(expected);
}

/* --- back is the transpose of forward, and rows are the same elements --- */

static lr_events_info tof_info(double resolution_ps)
{
    return (lr_events_info){.has_tof = true, .tof_resolution_ps = resolution_ps};
}

struct rows_seen {
    const double *image;
    double *sums;
};

static lr_status see_row(void *user, const lr_row *row)
{
    const struct rows_seen *seen = user;
    for (int64_t k = 0; k < row->count; k++) seen->sums[row->lor[k]] += seen->image[row->row] * row->probability[k];
    return LR_OK;
}

static void check_adjoint(const lr_lors *lors, const lr_grid *grid, const lr_events_info *info)
{
    const int64_t num_voxels = lr_grid_num_voxels(grid);
    lr_event *events = calloc(COUNT, sizeof(*events));
    int64_t *numbers = calloc(COUNT, sizeof(*numbers));
    const int64_t count = draw(lors, COUNT, events, numbers);
    uint64_t seed = 6;
    for (int64_t k = 0; k < count; k++) events[k].tof_mm = (float)(40.0 * test_random(&seed) - 20.0);
    lr_listmode_params params = params_of(lors, grid, events, count);
    params.info = info;
    params.num_ranges = 3;
    for (int k = 0; k < 3 && grid->voxel_mm[k] < 2; k++)
        params.samples[k] = 1; /* OpenGL in software goes through no more */
    lr_operator *op = open_operator(&params);
    double *x = case_random(num_voxels, &seed), *y = case_random(count, &seed);
    double *ax = case_doubles(count), *aty = case_doubles(num_voxels), *sums = case_doubles(count);
    forward(op, NULL, x, ax);
    back(op, y, aty);
    assert_true(case_dot(ax, ax, count) > 0);
    assert_close(case_dot(ax, y, count), case_dot(x, aty, num_voxels), 1e-6);
    struct rows_seen seen = {x, sums};
    assert_int_equal(lr_operator_rows(op, 0, num_voxels, &(lr_row_sink){see_row, &seen}), LR_OK);
    assert_true(case_difference(sums, ax, count) < 1e-6);
    lr_operator_destroy(op);
    /* Threads change no bit. */
    double *again = case_doubles(num_voxels), *values = case_doubles(count);
    params.threads = 5;
    op = open_operator(&params);
    forward(op, NULL, x, values);
    back(op, y, again);
    assert_memory_equal(values, ax, (size_t)count * sizeof(double));
    if (strcmp(backend, "cuda") != 0) /* where sums are floats in any order */
        assert_memory_equal(again, aty, (size_t)num_voxels * sizeof(double));
    lr_operator_destroy(op);
    free(events);
    free(numbers);
    free(x);
    free(y);
    free(ax);
    free(aty);
    free(sums);
    free(again);
    free(values);
}

static void test_back_is_the_transpose(void **state)
{
    const lr_grid around = ring_grid();
    /* Voxels that are small compared with crystals, on oblique lines to the leaning panel. Elements at one place
     * along the line are in many slices. */
    lr_grid fine = lr_grid_centred((const int[3]){22, 24, 12}, (const double[3]){1, 1.1, 1.2});
    fine.origin_mm[0] -= 38;
    fine.origin_mm[1] += 45;
    const lr_events_info info = tof_info(120), sharp = tof_info(10);
    check_adjoint(ring_lors, &around, NULL);
    check_adjoint(ring_lors, &around, &info);
    check_adjoint(panel_lors, &fine, &sharp);
}

/* Ratios of events that see next to nothing are next to infinite, and leave the others' sums alone. */
static void check_sizes(const lr_events_info *info, double large)
{
    const lr_grid grid = ring_grid();
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    lr_event *events = calloc(COUNT, sizeof(*events));
    int64_t *numbers = calloc(COUNT, sizeof(*numbers));
    const int64_t count = draw(ring_lors, COUNT, events, numbers);
    uint64_t seed = 16;
    double *values = case_random(count, &seed), *images[2];
    values[0] = large; /* at the edge of the image */
    for (int k = 0; k < 2; k++) {
        lr_listmode_params params = params_of(ring_lors, &grid, events, count);
        params.info = info;
        params.backend = k == 0 ? backend : "cpu";
        images[k] = case_doubles(num_voxels);
        lr_operator *op = open_operator(&params);
        back(op, values, images[k]);
        lr_operator_destroy(op);
    }
    assert_true(case_difference(images[0], images[1], num_voxels) < 1e-5);
    for (int64_t v = 0; v < num_voxels; v++)
        assert_true(fabs(images[0][v] - images[1][v]) <= 1e-4 * fabs(images[1][v]) + 1e-12);
    free(images[0]);
    free(images[1]);
    free(events);
    free(numbers);
    free(values);
}

static void test_sizes_of_values(void **state)
{
    const lr_events_info info = tof_info(150);
    check_sizes(NULL, 1e12);
    check_sizes(&info, 1e12);
    check_sizes(NULL, 30);
}

/* Events that do not fit the device's memory come some at a time. */
static void test_streamed_events(void **state)
{
    const lr_grid grid = ring_grid();
    const lr_events_info info = tof_info(150);
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    lr_event *events = calloc(COUNT, sizeof(*events));
    int64_t *numbers = calloc(COUNT, sizeof(*numbers));
    const int64_t count = draw(ring_lors, COUNT, events, numbers);
    uint64_t seed = 17;
    double *x = case_random(num_voxels, &seed), *y = case_random(count, &seed);
    double *values[2], *images[2];
    for (int k = 0; k < 2; k++) {
        lr_listmode_params params = params_of(ring_lors, &grid, events, count);
        params.info = &info;
        params.num_ranges = 2;
        params.max_memory_bytes = k;
        values[k] = case_doubles(count);
        images[k] = case_doubles(num_voxels);
        lr_operator *op = open_operator(&params);
        forward(op, NULL, x, values[k]);
        back(op, y, images[k]);
        lr_operator_destroy(op);
    }
    assert_memory_equal(values[0], values[1], (size_t)count * sizeof(double));
    assert_true(case_difference(images[1], images[0], num_voxels) < 1e-6);
    for (int k = 0; k < 2; k++) {
        free(values[k]);
        free(images[k]);
    }
    free(events);
    free(numbers);
    free(x);
    free(y);
}

/* --- slabs --- */

/* A back-projection as cuda makes it where the image is, or in slabs of shared memory of so many bytes. */
static double *back_in(const lr_listmode_params *params, const double *values, const char *bytes)
{
    double *image = case_doubles(lr_grid_num_voxels(params->grid));
    setenv("LR_TEST_LISTMODE_EXACT", bytes == NULL ? "atomics" : "tiles", 1);
    if (bytes != NULL) setenv("LR_TEST_LISTMODE_SLAB", bytes, 1);
    lr_operator *op = open_operator(params);
    back(op, values, image);
    lr_operator_destroy(op);
    unsetenv("LR_TEST_LISTMODE_EXACT");
    unsetenv("LR_TEST_LISTMODE_SLAB");
    return image;
}

/* Slabs of all slices, of four, of so few that some axes have none, and none at all. */
static void expect_slabs(const lr_listmode_params *params, const double *values)
{
    static const char *const bytes[4] = {"39000", "3800", "1800", "96"};
    const int64_t num_voxels = lr_grid_num_voxels(params->grid);
    double *expected = back_in(params, values, NULL);
    assert_true(case_dot(expected, expected, num_voxels) > 0);
    for (int k = 0; k < 4; k++) {
        double *found = back_in(params, values, bytes[k]);
        for (int64_t v = 0; v < num_voxels; v++) assert_true(fabs(found[v] - expected[v]) <= 5e-5 * fabs(expected[v]));
        free(found);
    }
    free(expected);
}

static void check_slabs(const lr_lors *lors, const lr_grid *grid, const lr_events_info *info)
{
    lr_event *events = calloc(COUNT, sizeof(*events));
    int64_t *numbers = calloc(COUNT, sizeof(*numbers));
    const int64_t count = draw(lors, COUNT, events, numbers);
    uint64_t seed = 18;
    double *values = case_random(count, &seed);
    for (int64_t k = 0; k < count; k++) events[k].tof_mm = (float)(60.0 * test_random(&seed) - 30.0);
    lr_listmode_params params = params_of(lors, grid, events, count);
    params.info = info;
    params.num_ranges = 2;
    expect_slabs(&params, values);
    values[count / 2] = 1e20;
    values[count / 3] = 1e-20;
    expect_slabs(&params, values);
    values[count / 2] = 1e37;
    values[count / 3] = 1e-25;
    expect_slabs(&params, values);
    for (int64_t k = 0; k < count; k++) values[k] = -1e-25 * (1.0 + test_random(&seed));
    expect_slabs(&params, values);
    free(events);
    free(numbers);
    free(values);
}

/* The event that sees most of an image of ones. */
static lr_event see_most(const lr_lors *lors, const lr_grid *grid)
{
    const int64_t num_voxels = lr_grid_num_voxels(grid);
    lr_event *events = calloc(COUNT, sizeof(*events));
    int64_t *numbers = calloc(COUNT, sizeof(*numbers)), most = 0;
    const int64_t count = draw(lors, COUNT, events, numbers);
    const lr_listmode_params params = params_of(lors, grid, events, count);
    double *ones = case_ones(num_voxels), *values = case_doubles(count);
    lr_operator *op = open_operator(&params);
    forward(op, NULL, ones, values);
    lr_operator_destroy(op);
    for (int64_t k = 0; k < count; k++) most = values[k] > values[most] ? k : most;
    const lr_event event = events[most];
    free(events);
    free(numbers);
    free(ones);
    free(values);
    return event;
}

/* Sums go beyond words of 32 bits where all events are on one line. */
static void check_one_line(const lr_lors *lors, const lr_grid *grid, double value)
{
    const lr_event event = see_most(lors, grid);
    lr_event *events = calloc(COUNT, sizeof(*events));
    double *values = case_doubles(COUNT);
    for (int k = 0; k < COUNT; k++) {
        events[k] = event;
        values[k] = value;
    }
    const lr_listmode_params params = params_of(lors, grid, events, COUNT);
    expect_slabs(&params, values);
    free(events);
    free(values);
}

static void test_slabs_have_the_sums_of_atomics(void **state)
{
    const lr_grid around = ring_grid(), between = panel_grid();
    const lr_events_info info = tof_info(150);
    if (strcmp(backend, "cuda") == 0) {
        check_slabs(ring_lors, &around, NULL);
        check_slabs(ring_lors, &around, &info);
        check_slabs(panel_lors, &between, NULL);
        check_slabs(panel_lors, &between, &info);
        check_one_line(ring_lors, &around, 1.0);
        check_one_line(ring_lors, &around, -3.0);
    }
}

/* --- closed forms --- */

/* Solid angle of a rectangle seen from a height above the origin of its plane: Mathar 2015 has it as the
 * sum over corners of atan(x y / (h r)). */
static double rectangle_angle(const double low[2], const double high[2], double height)
{
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        const double x = k & 1 ? high[0] : low[0], y = k & 2 ? high[1] : low[1];
        const double sign = (k & 1) == (k >> 1) ? 1.0 : -1.0;
        sum += sign * atan(x * y / (height * sqrt(x * x + y * y + height * height)));
    }
    return sum;
}

static double meet(double a, double b, bool least)
{
    return least == (a < b) ? a : b;
}

/* Opposite panels are parallel: what a point sees of one face through the other is a rectangle. */
static double closed_element(const lr_scanner *scanner, const lr_event *event, const double point[3])
{
    double centre[2][3], low[2], high[2];
    for (int f = 0; f < 2; f++) lr_scanner_hit_centre(scanner, event->crystals[f], centre[f]);
    const double height = fabs(centre[0][0] - point[0]), depth = fabs(centre[1][0] - point[0]);
    const double face[2] = {5.4, 6};
    for (int k = 0; k < 2; k++) {
        const double at = centre[0][k + 1] - point[k + 1];
        const double shadow = -(centre[1][k + 1] - point[k + 1]) * height / depth;
        const double half = 0.5 * face[k], wide = half * height / depth;
        low[k] = meet(at - half, shadow - wide, false);
        high[k] = meet(at + half, shadow + wide, true);
        if (low[k] >= high[k]) return 0.0;
    }
    return rectangle_angle(low, high, height) / (2 * PI);
}

static double closed_sum(const lr_event *event, const lr_grid *grid)
{
    double sum = 0;
    for (int64_t v = 0; v < lr_grid_num_voxels(grid); v++) {
        for (int k = 0; k < 6; k++) {
            double point[3];
            lr_grid_sample_point(grid, &(lr_sample){v, {2, 1, 3}, k}, point);
            sum += closed_element(panels, event, point) / 6.0;
        }
    }
    return sum;
}

/* A box of ones is what its points see, which is known in closed form. */
static void test_a_box_of_ones_is_its_solid_angle(void **state)
{
    enum { LINES = 40 };
    lr_grid grid = lr_grid_centred((const int[3]){24, 20, 14}, (const double[3]){6, 3, 4});
    grid.origin_mm[1] += 0.4;
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    lr_event events[LINES];
    uint64_t seed = test_seed();
    for (int k = 0; k < LINES; k++) {
        events[k] =
            (lr_event){.crystals = {(int)(64 * test_random(&seed)), 64 + (int)(64 * test_random(&seed))}, .weight = 1};
    }
    const lr_listmode_params params = params_of(panel_lors, &grid, events, LINES);
    lr_operator *op = open_operator(&params);
    double *ones = case_doubles(num_voxels), values[LINES];
    for (int64_t v = 0; v < num_voxels; v++) ones[v] = 1;
    forward(op, NULL, ones, values);
    for (int k = 0; k < LINES; k++) assert_close(values[k], closed_sum(&events[k], &grid), 1e-5);
    lr_operator_destroy(op);
    free(ones);
}

/* --- time of flight --- */

/* Bins of 4 mm that hold all places of the line, as events of one LOR. */
enum { BINS = 121 };
#define BIN_MM 4.0

static void bin_events(const lr_event *of, lr_event *events)
{
    for (int k = 0; k < BINS; k++) {
        events[k] = *of;
        events[k].tof_mm = (float)(BIN_MM * (k - BINS / 2));
    }
}

/* Element by element, the bins add up to that without time of flight. */
static void test_bins_add_up_to_the_element(void **state)
{
    const lr_grid grid = ring_grid();
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    lr_events_info info = tof_info(200); /* a sigma of 12.7 mm */
    uint64_t seed = test_seed();
    double *image = case_doubles(num_voxels), *plain = case_doubles(num_voxels), ones[BINS];
    for (int turn = 0; turn < 12; turn++) {
        int64_t lor;
        info.tof_bin_mm = turn % 3 == 0 ? BIN_MM : 0; /* else the sum is one over places */
        do {
            lor = (int64_t)(test_random(&seed) * (double)ring_lors->count);
        } while (!lr_lors_in_coincidence(ring_lors, lor));
        const lr_event one = event_of(ring_lors, lor, turn % 2 == 1);
        lr_event events[BINS];
        bin_events(&one, events);
        for (int k = 0; k < BINS; k++) ones[k] = BIN_MM;
        lr_listmode_params params = params_of(ring_lors, &grid, events, BINS);
        params.info = &info;
        lr_operator *op = open_operator(&params);
        back(op, ones, image);
        lr_operator_destroy(op);
        params = params_of(ring_lors, &grid, &one, 1);
        op = open_operator(&params);
        ones[0] = 1;
        back(op, ones, plain);
        lr_operator_destroy(op);
        for (int64_t v = 0; v < num_voxels; v++)
            assert_true(fabs(image[v] - plain[v]) <= (info.tof_bin_mm > 0 ? 1e-5 : 1e-4) * plain[v]);
    }
    free(image);
    free(plain);
}

/* Mean of a Gaussian over the extent of a voxel. The Gaussian is centred at `tof_mm` from a to b and cut at three
 * standard deviations. The extent is a box whose variance is that of the voxel's points along the line. */
static double mean_density(const lr_grid *grid, const double ends[2][3], const double tof_sigma[2], int64_t voxel)
{
    double centre[3], length = 0, place = 0, extent = 0;
    lr_grid_voxel_centre(grid, voxel, centre);
    for (int k = 0; k < 3; k++) length += (ends[1][k] - ends[0][k]) * (ends[1][k] - ends[0][k]);
    length = sqrt(length);
    for (int k = 0; k < 3; k++) {
        const double along = (ends[1][k] - ends[0][k]) / length;
        place += along * (centre[k] - 0.5 * (ends[0][k] + ends[1][k]));
        extent += along * grid->voxel_mm[k] * along * grid->voxel_mm[k];
    }
    extent = sqrt(extent);
    const double off = place - tof_sigma[0], sigma = tof_sigma[1];
    const double low = fmax(off - 0.5 * extent, -3 * sigma) / sigma;
    const double high = fmin(off + 0.5 * extent, 3 * sigma) / sigma;
    return high > low ? 0.5 * (erf(high * sqrt(0.5)) - erf(low * sqrt(0.5))) / (0.9973002039367398 * extent) : 0;
}

static double mean_in_bin(const lr_grid *grid, const double ends[2][3], const double tof_sigma[2], double bin_mm,
                          int64_t voxel)
{
    enum { PARTS = 2000 };
    double sum = 0;
    for (int k = 0; bin_mm > 0 && k < PARTS; k++) {
        const double place_mm = tof_sigma[0] + ((k + 0.5) / PARTS - 0.5) * bin_mm;
        sum += mean_density(grid, ends, (const double[2]){place_mm, tof_sigma[1]}, voxel);
    }
    return bin_mm > 0 ? sum / PARTS : mean_density(grid, ends, tof_sigma, voxel);
}

static void test_a_weight_is_the_mean_of_the_gaussian(void **state)
{
    enum { LINES = 45 };
    static const double bins_mm[3] = {0, 5, 24};
    const lr_grid grid = panel_grid();
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    lr_events_info info = tof_info(80);
    const double sigma_mm = 80 * 0.149896229 / 2.3548200450309493;
    double *with = case_doubles(num_voxels), *without = case_doubles(num_voxels), one[1] = {1};
    uint64_t seed = test_seed();
    int reached = 0, beyond = 0;
    for (int line = 0; line < LINES; line++) {
        const int a = (int)(64 * test_random(&seed)), b = 64 + (int)(128 * test_random(&seed));
        const bool turned = line % 2 == 1;
        const lr_event event = {
            .crystals = {turned ? b : a, turned ? a : b}, .weight = 1, .tof_mm = (float)(40 * test_random(&seed) - 20)};
        double ends[2][3];
        lr_scanner_hit_centre(panels, event.crystals[0], ends[0]);
        lr_scanner_hit_centre(panels, event.crystals[1], ends[1]);
        info.tof_bin_mm = bins_mm[line % 3];
        /* The normal distribution of native is good to 1.2e-9, means over bins are sums here. */
        const bool is_plain = info.tof_bin_mm == 0 && strcmp(backend, "native") != 0;
        const double of_peak = is_single() ? 5e-6 : is_plain ? 0 : 2e-8;
        for (int pass = 0; pass < 2; pass++) {
            lr_listmode_params params = params_of(panel_lors, &grid, &event, 1);
            params.info = pass > 0 ? &info : NULL;
            lr_operator *op = open_operator(&params);
            back(op, one, pass > 0 ? with : without);
            lr_operator_destroy(op);
        }
        for (int64_t v = 0; v < num_voxels; v++) {
            const double expected =
                without[v] > 0
                    ? without[v] * mean_in_bin(&grid, (const double(*)[3])ends,
                                               (const double[2]){(double)event.tof_mm, sigma_mm}, info.tof_bin_mm, v)
                    : 0;
            const double peak = 0.4 / sigma_mm * without[v];
            assert_true(fabs(with[v] - expected) <= 1e-6 * expected + of_peak * peak);
            reached += with[v] > 0;
            beyond += without[v] > 0 && with[v] == 0;
        }
    }
    assert_true(reached > 100 && beyond > 100);
    free(with);
    free(without);
}

/* --- factors, samples, and what is refused --- */

static lr_status get_factors(void *user, const lr_lor_span *span, float *values)
{
    (void)user;
    for (int64_t k = 0; k < span->count; k++) {
        const int64_t lor = span->numbers != NULL ? span->numbers[k] : span->first + k;
        values[k] = 0.5f + (float)(lor * 7919 % 1000) * 1e-3f;
    }
    return LR_OK;
}

static void test_factors_multiply(void **state)
{
    static const lr_lor_source factors = {get_factors, NULL};
    const lr_grid grid = ring_grid();
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    lr_event *events = calloc(COUNT, sizeof(*events));
    int64_t *numbers = calloc(COUNT, sizeof(*numbers));
    const int64_t count = draw(ring_lors, COUNT, events, numbers);
    uint64_t seed = 8;
    double *image = case_random(num_voxels, &seed);
    double *with = case_doubles(count), *without = case_doubles(count);
    for (int pass = 0; pass < 2; pass++) {
        lr_listmode_params params = params_of(ring_lors, &grid, events, count);
        params.factors = pass > 0 ? &factors : NULL;
        lr_operator *op = open_operator(&params);
        forward(op, NULL, image, pass > 0 ? with : without);
        lr_operator_destroy(op);
    }
    for (int64_t k = 0; k < count; k++)
        assert_close(with[k], (0.5 + (double)(numbers[k] * 7919 % 1000) * 1e-3) * without[k], 1e-6);
    free(events);
    free(numbers);
    free(image);
    free(with);
    free(without);
}

static void expect_refusal(const lr_listmode_params *params, const char *sentence)
{
    test_log_init(&test_log);
    assert_null(lr_listmode_create(params));
    if (test_log.status != LR_USAGE || strstr(test_log.error, sentence) == NULL)
        fail_msg("expected '%s', found '%s'", sentence, test_log.error);
}

static void test_mistakes_are_told(void **state)
{
    const lr_grid grid = panel_grid();
    const lr_event event = {.crystals = {0, 70}, .weight = 1};
    lr_listmode_params params = params_of(panel_lors, &grid, &event, 1);
    params.samples[1] = -1;
    expect_refusal(&params, "samples = -1 along y");
    if (strcmp(backend, "cpu") != 0) {
        params = params_of(stack_lors, &grid, &event, 1);
        expect_refusal(&params, "has exact elements only where none does");
    }
    params = params_of(stack_lors, &grid, &event, 1);
    params.backend = NULL;
    params.samples[0] = params.samples[1] = params.samples[2] = 0;
    lr_operator *op = open_operator(&params);
    assert_string_equal(lr_operator_get_info(op)->backend, "cpu");
    int usual[3];
    lr_operator_default_samples(stack, &grid, usual);
    assert_memory_equal(lr_operator_get_info(op)->samples, usual, sizeof(usual));
    lr_operator_destroy(op);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_have_the_elements_of_their_lors),
        cmocka_unit_test(test_sensitivity_is_that_of_the_lors),
        cmocka_unit_test(test_back_is_the_transpose),
        cmocka_unit_test(test_sizes_of_values),
        cmocka_unit_test(test_streamed_events),
        cmocka_unit_test(test_slabs_have_the_sums_of_atomics),
        cmocka_unit_test(test_a_box_of_ones_is_its_solid_angle),
        cmocka_unit_test(test_bins_add_up_to_the_element),
        cmocka_unit_test(test_a_weight_is_the_mean_of_the_gaussian),
        cmocka_unit_test(test_factors_multiply),
        cmocka_unit_test(test_mistakes_are_told),
    };
    backend = argc > 1 ? argv[1] : "cpu";
    if (lacks_device(backend)) return 77;
    return cmocka_run_group_tests(tests, setup, teardown);
}
