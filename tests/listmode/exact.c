/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The exact kernel of list mode, for the backend that argv[1] names, against the family correspondence LOR by LOR,
 * against closed forms, and against sums over bins of time of flight. */
#include "listmode/cases.h"

#define PI 3.14159265358979323846

enum { COUNT = 600 };

static lr_lors *ring, *wide_ring, *panels, *stack;
static lr_grid ring_grid, wide_grid, panel_grid;

/* --- scanners --- */

/* Panels at x = -80 and 80, of 8 x 8 crystals of 6 mm, and an inclined one above them. An optional fourth panel
 * stands between the first two and hides parts of them. */
static lr_scanner *make_panels(int num_modules)
{
    const double lean = 0.35;
    lr_module modules[4] = {
        {.centre_mm = {-80, 0, 0}, .u = {0, 1, 0}, .v = {0, 0, 1}},
        {.centre_mm = {80, 3, -2}, .u = {0, 1, 0}, .v = {0, 0, 1}},
        {.centre_mm = {5, 90, 4}, .u = {cos(lean), sin(lean), 0}, .v = {-0.3 * sin(lean), 0.3 * cos(lean), sqrt(0.91)}},
        {.centre_mm = {50, -20, 5}, .u = {0, 1, 0}, .v = {0, 0, 1}}};
    for (int m = 0; m < 4; m++) {
        for (int k = 0; k < 2; k++) {
            modules[m].crystals[k] = m < 3 ? 8 : 4;
            modules[m].pitch_mm[k] = 6;
            modules[m].face_mm[k] = k == 0 ? 5.4 : 6;
        }
        modules[m].depth_mm = 5;
    }
    return lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = num_modules});
}

/* Crystals of the wide ring are as small relative to the lengths of lines as those of clinical scanners. */
static int set_up(void **state)
{
    ring = lors_from(scanner_from("ring: {radius_mm: 60, modules: 10}\nmodule: {crystals: [4, 3], pitch_mm: [5, 5], "
                                  "face_mm: [4.2, 4.6], depth_mm: 10}\ncoincidence: {min_module_difference: 3}"));
    wide_ring =
        lors_from(scanner_from("ring: {radius_mm: 200, modules: 24}\nmodule: {crystals: [8, 3], pitch_mm: [6, 5], "
                               "face_mm: [5.6, 4.9], depth_mm: 20}\ncoincidence: {min_module_difference: 5}"));
    panels = lors_from(make_panels(3));
    stack = lors_from(make_panels(4));
    ring_grid = shifted_grid((const int[3]){17, 14, 5}, (const double[3]){5, 6, 3.5}, (const double[3]){0.7, -1.1, 0});
    wide_grid = shifted_grid((const int[3]){17, 15, 7}, (const double[3]){14, 16, 6}, (const double[3]){0.3, -1.7, 0});
    panel_grid = shifted_grid((const int[3]){11, 12, 9}, (const double[3]){6, 5, 7}, (const double[3]){0, 0, 1.3});
    return 0;
}

/* --- operators --- */

static lr_listmode_params params_of(const lr_lors *lors, const lr_grid *grid, const lr_event *events, int64_t count)
{
    lr_listmode_params params = case_params(lors, grid, events, count);
    params.kernel = LR_LISTMODE_EXACT;
    memcpy(params.samples, (const int[3]){2, 1, 3}, sizeof(params.samples));
    return params;
}

/* Events on random LORs in coincidence, one per LOR, with the crystals in either order. */
struct drawn {
    int64_t count, num_voxels;
    lr_event *events;
    int64_t *numbers; /* numbers of their LORs, ascending and without repeats */
    lr_listmode_params params;
};

static struct drawn draw(const lr_lors *lors, const lr_grid *grid)
{
    uint64_t seed = test_seed();
    struct drawn drawn = {.num_voxels = lr_grid_num_voxels(grid)};
    drawn.events = kept(COUNT, sizeof(*drawn.events));
    drawn.numbers = kept(COUNT, sizeof(*drawn.numbers));
    for (int64_t k = 0; k < COUNT; k++) {
        const int64_t lor = (int64_t)(((double)k + test_random(&seed)) * (double)lors->count / (double)COUNT);
        const bool is_new = drawn.count == 0 || drawn.numbers[drawn.count - 1] < lor;
        if (is_new && lr_lors_in_coincidence(lors, lor)) {
            drawn.numbers[drawn.count] = lor;
            drawn.events[drawn.count++] = event_of(lors, lor, test_random(&seed) < 0.5);
        }
    }
    assert_true(drawn.count > COUNT / 4);
    drawn.params = params_of(lors, grid, drawn.events, drawn.count);
    return drawn;
}

/* The reference: exact mode of the family correspondence, in double. */
static lr_operator *open_lors(const lr_lors *lors, const lr_grid *grid)
{
    return keep(fixture_operator(&filled(lr_operator_params, .lors = lors, .grid = grid, .mode = LR_MODE_EXACT,
                                         .samples = {2, 1, 3}, .backend = "cpu", .threads = 2, .store = LR_STORE_NO,
                                         .log = &test_log.log)));
}

/* --- the elements are those of the family correspondence --- */

static void check_against_lors(const lr_lors *lors, const lr_grid *grid)
{
    const struct drawn drawn = draw(lors, grid);
    const lr_selection part = {.lors = drawn.numbers, .num_lors = drawn.count};
    uint64_t seed = 5;
    double *image = kept_random_singles(drawn.num_voxels, 0, 1, &seed), *expected = kept_doubles(drawn.count),
           worst = 0;
    const double *found = values_by(&drawn.params, image);
    forward(open_lors(lors, grid), &part, image, expected);
    const double rms = sqrt(dot_product(expected, expected, drawn.count) / (double)drawn.count);
    int64_t seen = 0;
    for (int64_t k = 0; k < drawn.count; k++) {
        worst = fmax(worst, fabs(found[k] - expected[k]) / rms);
        seen += expected[k] > 0;
    }
    print_message("%lld of %lld LORs see the grid; the worst is off by %.2g rms\n", (long long)seen,
                  (long long)drawn.count, worst);
    assert_true(seen > drawn.count / 8);
    /* Elements on devices are in single precision, accurate to about 1e-6 of the largest element. */
    assert_true(worst < (is_on_device() ? 1e-5 : 1e-6));
}

static void test_events_have_the_elements_of_their_lors(void **state)
{
    check_against_lors(ring, &ring_grid);
    check_against_lors(wide_ring, &wide_grid);
    check_against_lors(panels, &panel_grid);
    if (test_backend_is("cpu")) check_against_lors(stack, &panel_grid);
}

static void test_sensitivity_is_that_of_the_lors(void **state)
{
    const int64_t num_voxels = lr_grid_num_voxels(&ring_grid);
    const lr_event event = event_of(ring, ring->count / 2, false);
    const lr_listmode_params params = params_of(ring, &ring_grid, &event, 1);
    const double *found = sensitivity_by(&params, NULL);
    const double *expected = sensitivity_of(open_lors(ring, &ring_grid), NULL);
    assert_true(l2_apart(found, expected, num_voxels) < 1e-5);
    for (int64_t v = 0; v < num_voxels; v++) assert_close(found[v], expected[v], 1e-5);
}

/* --- back is the transpose of forward, and rows have the same elements --- */

static void check_adjoint(const lr_lors *lors, const lr_grid *grid, const lr_events_info *info)
{
    struct drawn drawn = draw(lors, grid);
    uint64_t seed = 6;
    for (int64_t k = 0; k < drawn.count; k++) drawn.events[k].tof_mm = (float)(40.0 * test_random(&seed) - 20.0);
    drawn.params.info = info;
    drawn.params.num_ranges = 3;
    for (int k = 0; k < 3 && grid->voxel_mm[k] < 2; k++)
        drawn.params.samples[k] = 1; /* fewer samples, since loops of OpenGL in software must end early */
    lr_operator *op = kept_operator(&drawn.params);
    const struct both both = both_of(op, NULL);
    expect_adjoint(&both, 1e-6);
    struct rows_seen seen = {.x = both.x, .sums = kept_doubles(drawn.count)};
    assert_ok(lr_operator_rows(op, 0, drawn.num_voxels, &(lr_row_sink){see_row, &seen}));
    assert_true(l2_apart(seen.sums, both.values, drawn.count) < 1e-6);
    /* The number of threads changes no bit. */
    drawn.params.threads = 5;
    const struct both again = both_by(&drawn.params, NULL);
    assert_memory_equal(again.values, both.values, (size_t)drawn.count * sizeof(double));
    if (!test_backend_is("cuda")) /* sums of cuda are floats, added in any order */
        assert_memory_equal(again.image, both.image, (size_t)drawn.num_voxels * sizeof(double));
}

static void test_back_is_the_transpose(void **state)
{
    /* Voxels are small compared with crystals, and lines to the inclined panel are oblique, so that elements at one
     * position along the line lie in many slices. */
    const lr_grid fine =
        shifted_grid((const int[3]){22, 24, 12}, (const double[3]){1, 1.1, 1.2}, (const double[3]){-38, 45, 0});
    const lr_events_info info = tof_info(120), sharp = tof_info(10);
    check_adjoint(ring, &ring_grid, NULL);
    check_adjoint(ring, &ring_grid, &info);
    check_adjoint(panels, &fine, &sharp);
}

/* An event that hardly sees the image has a nearly infinite ratio, which must not affect the sums of other events. */
static void check_sizes(const lr_events_info *info, double large)
{
    struct drawn drawn = draw(ring, &ring_grid);
    uint64_t seed = 16;
    double *values = kept_random_singles(drawn.count, 0, 1, &seed);
    values[0] = large; /* an event at the edge of the image */
    drawn.params.info = info;
    const double *found = image_by(&drawn.params, values);
    drawn.params.backend = "cpu";
    const double *expected = image_by(&drawn.params, values);
    assert_true(l2_apart(found, expected, drawn.num_voxels) < 1e-5);
    for (int64_t v = 0; v < drawn.num_voxels; v++)
        assert_true(fabs(found[v] - expected[v]) <= 1e-4 * fabs(expected[v]) + 1e-12);
}

static void test_sizes_of_values(void **state)
{
    const lr_events_info info = tof_info(150);
    check_sizes(NULL, 1e12);
    check_sizes(&info, 1e12);
    check_sizes(NULL, 30);
}

/* Events that do not fit into the device's memory are streamed in parts. */
static void test_streamed_events(void **state)
{
    const lr_events_info info = tof_info(150);
    struct drawn drawn = draw(ring, &ring_grid);
    drawn.params.info = &info;
    drawn.params.num_ranges = 2;
    const struct both whole = both_by(&drawn.params, NULL);
    drawn.params.max_memory_bytes = 1;
    const struct both streamed = both_by(&drawn.params, NULL);
    assert_memory_equal(whole.values, streamed.values, (size_t)drawn.count * sizeof(double));
    assert_true(l2_apart(streamed.image, whole.image, drawn.num_voxels) < 1e-6);
}

/* --- slabs --- */

/* A back-projection as cuda computes it: directly into the image (bytes NULL), or in slabs of shared memory of so
   many bytes. */
static double *back_in(const lr_listmode_params *params, const double *values, const char *bytes)
{
    setenv("LR_TEST_LISTMODE_EXACT", bytes == NULL ? "atomics" : "tiles", 1);
    if (bytes != NULL) setenv("LR_TEST_LISTMODE_SLAB", bytes, 1);
    double *image = image_by(params, values);
    unsetenv("LR_TEST_LISTMODE_EXACT");
    unsetenv("LR_TEST_LISTMODE_SLAB");
    return image;
}

/* Slabs that hold all slices, four slices, so few that some axes cannot use slabs, and none. */
static void expect_slabs(const lr_listmode_params *params, const double *values)
{
    static const char *const bytes[4] = {"39000", "3800", "1800", "96"};
    const int64_t num_voxels = lr_grid_num_voxels(params->grid);
    const double *expected = back_in(params, values, NULL);
    assert_true(dot_product(expected, expected, num_voxels) > 0);
    for (int k = 0; k < 4; k++) {
        const double *found = back_in(params, values, bytes[k]);
        for (int64_t v = 0; v < num_voxels; v++) assert_true(fabs(found[v] - expected[v]) <= 5e-5 * fabs(expected[v]));
    }
}

static void check_slabs(const lr_lors *lors, const lr_grid *grid, const lr_events_info *info)
{
    static const double large[3][2] = {{0, 0}, {1e20, 1e-20}, {1e37, 1e-25}};
    struct drawn drawn = draw(lors, grid);
    uint64_t seed = 18;
    double *values = kept_random_singles(drawn.count, 0, 1, &seed);
    for (int64_t k = 0; k < drawn.count; k++) drawn.events[k].tof_mm = (float)(60.0 * test_random(&seed) - 30.0);
    drawn.params.info = info;
    drawn.params.num_ranges = 2;
    for (int k = 0; k < 3; k++) {
        if (k > 0) values[drawn.count / 2] = large[k][0];
        if (k > 0) values[drawn.count / 3] = large[k][1];
        expect_slabs(&drawn.params, values);
    }
    for (int64_t k = 0; k < drawn.count; k++) values[k] = -1e-25 * (1.0 + test_random(&seed));
    expect_slabs(&drawn.params, values);
}

/* All events are on the line that sees most of an image of ones, so that their sums exceed words of 32 bits. */
static void check_one_line(const lr_lors *lors, const lr_grid *grid, double value)
{
    const struct drawn drawn = draw(lors, grid);
    const double *seen = values_by(&drawn.params, NULL);
    lr_event *events = kept(COUNT, sizeof(*events));
    double *values = kept_doubles(COUNT);
    int64_t most = 0;
    for (int64_t k = 0; k < drawn.count; k++) most = seen[k] > seen[most] ? k : most;
    for (int k = 0; k < COUNT; k++) {
        events[k] = drawn.events[most];
        values[k] = value;
    }
    const lr_listmode_params params = params_of(lors, grid, events, COUNT);
    expect_slabs(&params, values);
}

static void test_slabs_have_the_sums_of_atomics(void **state)
{
    const lr_events_info info = tof_info(150);
    if (test_backend_is("cuda")) {
        check_slabs(ring, &ring_grid, NULL);
        check_slabs(ring, &ring_grid, &info);
        check_slabs(panels, &panel_grid, NULL);
        check_slabs(panels, &panel_grid, &info);
        check_one_line(ring, &ring_grid, 1.0);
        check_one_line(ring, &ring_grid, -3.0);
    }
}

/* --- closed forms --- */

/* Solid angle of a rectangle seen from a height above the origin of its plane: by Mathar 2015, the sum over its
 * corners of atan(x y / (h r)). */
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

/* Opposite panels are parallel: a point sees a rectangle of one face through the other. */
static double closed_element(const lr_event *event, const double point[3])
{
    double centre[2][3], low[2], high[2];
    for (int f = 0; f < 2; f++) lr_scanner_hit_centre(panels->scanner, event->crystals[f], centre[f]);
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

/* The value of a box of ones is the integral of what its points see, which has a closed form. */
static void test_a_box_of_ones_is_its_solid_angle(void **state)
{
    enum { LINES = 40 };
    const lr_grid grid =
        shifted_grid((const int[3]){24, 20, 14}, (const double[3]){6, 3, 4}, (const double[3]){0, 0.4, 0});
    lr_event events[LINES];
    uint64_t seed = test_seed();
    for (int k = 0; k < LINES; k++) {
        events[k] =
            (lr_event){.crystals = {(int)(64 * test_random(&seed)), 64 + (int)(64 * test_random(&seed))}, .weight = 1};
    }
    const lr_listmode_params params = params_of(panels, &grid, events, LINES);
    const double *values = values_by(&params, NULL);
    for (int k = 0; k < LINES; k++) {
        double sum = 0, point[3];
        for (int64_t n = 0; n < 6 * lr_grid_num_voxels(&grid); n++) {
            lr_grid_sample_point(&grid, &(lr_sample){n / 6, {2, 1, 3}, (int)(n % 6)}, point);
            sum += closed_element(&events[k], point) / 6.0;
        }
        assert_close(values[k], sum, 1e-5);
    }
}

/* --- time of flight --- */

/* Time-of-flight bins of 4 mm cover the whole line: for every element, the sum over bins equals the element without
   time of flight. */
static void test_bins_add_up_to_the_element(void **state)
{
    enum { BINS = 121 };
    const double bin_mm = 4;
    const int64_t num_voxels = lr_grid_num_voxels(&ring_grid);
    lr_events_info info = tof_info(200); /* a sigma of 12.7 mm */
    uint64_t seed = test_seed();
    double widths[BINS];
    for (int turn = 0; turn < 12; turn++) {
        int64_t lor;
        info.tof_bin_mm = turn % 3 == 0 ? bin_mm : 0; /* otherwise a sum over exact positions */
        do {
            lor = (int64_t)(test_random(&seed) * (double)ring->count);
        } while (!lr_lors_in_coincidence(ring, lor));
        const lr_event one = event_of(ring, lor, turn % 2 == 1);
        lr_event events[BINS];
        for (int k = 0; k < BINS; k++) {
            events[k] = one;
            events[k].tof_mm = (float)(bin_mm * (k - BINS / 2));
            widths[k] = bin_mm;
        }
        lr_listmode_params params = params_of(ring, &ring_grid, events, BINS);
        params.info = &info;
        const double *image = image_by(&params, widths);
        params = params_of(ring, &ring_grid, &one, 1);
        const double *plain = image_by(&params, NULL);
        for (int64_t v = 0; v < num_voxels; v++)
            assert_true(fabs(image[v] - plain[v]) <= (info.tof_bin_mm > 0 ? 1e-5 : 1e-4) * plain[v]);
    }
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
    const int64_t num_voxels = lr_grid_num_voxels(&panel_grid);
    lr_events_info info = tof_info(80);
    const double sigma_mm = 80 * 0.149896229 / 2.3548200450309493;
    uint64_t seed = test_seed();
    int reached = 0, beyond = 0;
    for (int line = 0; line < LINES; line++) {
        const int a = (int)(64 * test_random(&seed)), b = 64 + (int)(128 * test_random(&seed));
        const bool turned = line % 2 == 1;
        const lr_event event = {
            .crystals = {turned ? b : a, turned ? a : b}, .weight = 1, .tof_mm = (float)(40 * test_random(&seed) - 20)};
        const double tof_sigma[2] = {(double)event.tof_mm, sigma_mm};
        double ends[2][3];
        for (int k = 0; k < 2; k++) lr_scanner_hit_centre(panels->scanner, event.crystals[k], ends[k]);
        info.tof_bin_mm = bins_mm[line % 3];
        /* The normal distribution of native is accurate to 1.2e-9; the mean over a bin is a sum in this test. */
        const bool is_plain = info.tof_bin_mm == 0 && !test_backend_is("native");
        const double of_peak = is_on_device() ? 5e-6 : is_plain ? 0 : 2e-8;
        lr_listmode_params params = params_of(panels, &panel_grid, &event, 1);
        const double *without = image_by(&params, NULL);
        params.info = &info;
        const double *with = image_by(&params, NULL);
        for (int64_t v = 0; v < num_voxels; v++) {
            double expected = 0;
            if (without[v] > 0) {
                expected =
                    without[v] * mean_in_bin(&panel_grid, (const double(*)[3])ends, tof_sigma, info.tof_bin_mm, v);
            }
            const double peak = 0.4 / sigma_mm * without[v];
            assert_true(fabs(with[v] - expected) <= 1e-6 * expected + of_peak * peak);
            reached += with[v] > 0;
            beyond += without[v] > 0 && with[v] == 0;
        }
    }
    assert_true(reached > 100 && beyond > 100);
}

/* --- factors, samples, and requests that are refused --- */

/* --- the solid angles of tubes, thin lines and blobs --- */

/* Elements of tubes, lines and blobs are those without solid angles times a cos(alpha) b cos(beta) / (2 pi L^2 V). */
static void test_solid_angles_are_of_the_crystals(void **state)
{
    struct drawn drawn = draw(panels, &panel_grid);
    lr_listmode_params params = drawn.params;
    const lr_blobs blobs = {.radius_mm = 7};
    const double volume = panel_grid.voxel_mm[0] * panel_grid.voxel_mm[1] * panel_grid.voxel_mm[2];
    for (int k = 0; k < 3; k++) {
        params.kernel = k == 0 ? LR_LISTMODE_TUBE : LR_LISTMODE_LINE;
        params.blobs = k == 2 ? &blobs : NULL;
        params.no_solid_angles = false;
        const double *found = values_by(&params, NULL);
        params.no_solid_angles = true;
        const double *lengths = values_by(&params, NULL);
        int seen = 0;
        for (int64_t n = 0; n < drawn.count; n++) {
            double ends[2][3], along[3], expected = lengths[n] / (2 * PI * volume);
            for (int e = 0; e < 2; e++) lr_scanner_hit_centre(panels->scanner, drawn.events[n].crystals[e], ends[e]);
            for (int axis = 0; axis < 3; axis++) along[axis] = ends[1][axis] - ends[0][axis];
            const double length = hypot(hypot(along[0], along[1]), along[2]);
            for (int e = 0; e < 2; e++) {
                const lr_module *module =
                    &panels->scanner->modules[lr_scanner_module_of(panels->scanner, drawn.events[n].crystals[e])];
                double cosine = 0;
                for (int axis = 0; axis < 3; axis++) cosine += module->normal[axis] * along[axis] / length;
                expected *= module->face_mm[0] * module->face_mm[1] * fabs(cosine) / length;
            }
            seen += lengths[n] > 0;
            assert_close(found[n], expected, 1e-5);
        }
        assert_true(seen > drawn.count / 8);
    }
}

/* Summed over planes of voxels, sensitivities of tubes and lines are nearly the exact one, since crystals are small. */
static void test_images_are_in_emissions(void **state)
{
    const int64_t num_voxels = lr_grid_num_voxels(&wide_grid);
    const lr_event event = event_of(wide_ring, wide_ring->count / 2, false);
    lr_listmode_params params = params_of(wide_ring, &wide_grid, &event, 1);
    const double *exact = sensitivity_of(open_lors(wide_ring, &wide_grid), NULL);
    for (int k = 0; k < 2; k++) {
        params.kernel = k == 0 ? LR_LISTMODE_TUBE : LR_LISTMODE_LINE;
        lr_listmode_info info;
        const double *found = sensitivity_by(&params, &info);
        double sums[2][32] = {{0}}, worst = 0;
        for (int64_t v = 0; v < num_voxels; v++) {
            sums[0][v % wide_grid.size[0]] += found[v];
            sums[1][v % wide_grid.size[0]] += exact[v];
        }
        for (int x = 0; x < wide_grid.size[0]; x++) worst = fmax(worst, fabs(sums[0][x] / sums[1][x] - 1));
        print_message("%s: sums over planes are %.2g from the exact ones\n", k == 0 ? "tubes" : "lines", worst);
        assert_all(info.has_solid_angles, worst < 0.03);
    }
}

static void test_factors_multiply(void **state)
{
    struct drawn drawn = draw(ring, &ring_grid);
    uint64_t seed = 8;
    const double *image = kept_random_singles(drawn.num_voxels, 0, 1, &seed),
                 *without = values_by(&drawn.params, image);
    drawn.params.factors = &factors;
    const double *with = values_by(&drawn.params, image);
    for (int64_t k = 0; k < drawn.count; k++)
        assert_close(with[k], case_factor(usual_range, drawn.numbers[k]) * without[k], 1e-6);
}

static void test_mistakes_are_told(void **state)
{
    const lr_event event = {.crystals = {0, 70}, .weight = 1};
    lr_listmode_params params = params_of(panels, &panel_grid, &event, 1);
    params.samples[1] = -1;
    assert_none(lr_listmode_create(&params), LR_USAGE, &test_log, "samples = -1 along y");
    params = params_of(stack, &panel_grid, &event, 1);
    if (!test_backend_is("cpu"))
        assert_none(lr_listmode_create(&params), LR_USAGE, &test_log, "has exact elements only where none does");
    params.backend = NULL;
    params.samples[0] = params.samples[1] = params.samples[2] = 0;
    const lr_operator_info *info = lr_operator_get_info(kept_operator(&params));
    assert_string_equal(info->backend, "cpu");
    int usual[3];
    lr_operator_default_samples(stack->scanner, &panel_grid, usual);
    assert_memory_equal(info->samples, usual, sizeof(usual));
}

case_main("cpu", set_up,
          CASES(test_events_have_the_elements_of_their_lors, test_sensitivity_is_that_of_the_lors,
                test_back_is_the_transpose, test_sizes_of_values, test_streamed_events,
                test_slabs_have_the_sums_of_atomics, test_a_box_of_ones_is_its_solid_angle,
                test_bins_add_up_to_the_element, test_a_weight_is_the_mean_of_the_gaussian,
                test_solid_angles_are_of_the_crystals, test_images_are_in_emissions, test_factors_multiply,
                test_mistakes_are_told))
