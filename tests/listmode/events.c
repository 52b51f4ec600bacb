/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Events of list mode: how they are arranged, errors for events that are refused, and which lines are near a region. */
#include "listmode/cases.h"
#include "listmode/region.h"

enum { COUNT = 5000 };

static lr_scanner *scanner;
static lr_lors lors;
static lr_grid grid;
static lr_event *events;
static lr_events_info info;
static lr_listmode_params params;

static int set_up(void **state)
{
    uint64_t seed = 3;
    scanner = case_scanner();
    lors = (lr_lors){.scanner = scanner};
    grid = case_grid();
    events = case_events(COUNT, &seed);
    info = tof_info(400);
    test_log_init(&test_log);
    params = (lr_listmode_params){
        .lors = &lors, .grid = &grid, .events = events, .count = COUNT, .info = &info, .log = &test_log.log};
    return 0;
}

/* --- arranging --- */

static double run_along(const lr_event *event, int axis)
{
    double a[3], b[3];
    case_point(event->crystals[0], a);
    case_point(event->crystals[1], b);
    return b[axis] - a[axis];
}

static double centre_along(const lr_event *event, int axis)
{
    double a[3], square = 0;
    case_point(event->crystals[0], a);
    for (int k = 0; k < 3; k++) square += run_along(event, k) * run_along(event, k);
    return a[axis] + run_along(event, axis) * (0.5 + (double)event->tof_mm / sqrt(square));
}

static void check_arranged(int64_t num_ranges, int groups_used)
{
    struct lr_listmode_events found;
    char *seen = kept(COUNT, 1);
    int used = 0;
    assert_ok(events_init(&found, &params));
    assert_ints(found.layout.num_pairs, num_ranges, found.layout.count, COUNT);
    for (int r = 0; r < num_ranges; r++) {
        assert_int_equal(found.groups[r][0], found.offsets[r]);
        assert_int_equal(found.groups[r][LR_LISTMODE_GROUPS], found.offsets[r + 1]);
        for (int g = 0; g < LR_LISTMODE_GROUPS; g++) {
            double before = -1e30;
            const int axis = lr_listmode_group_axis(g);
            for (int64_t k = found.groups[r][g]; k < found.groups[r][g + 1]; k++) {
                const int64_t number = found.offsets[r] + found.number[k];
                const lr_event *event = &events[number];
                assert_true(number < found.offsets[r + 1] && !seen[number]);
                seen[number] = 1;
                assert_ints(found.crystals[0][k], event->crystals[0], found.crystals[1][k], event->crystals[1]);
                for (int other = 0; other < 3; other++)
                    assert_true(fabs(run_along(event, axis)) >= fabs(run_along(event, other)));
                if (lr_listmode_group_has_tof(g)) {
                    assert_all(found.tof_mm[k] == event->tof_mm, centre_along(event, axis) >= before - 1e-4);
                    before = centre_along(event, axis);
                } else {
                    assert_true((double)number > before);
                    before = (double)number;
                }
            }
            used += r == 0 && found.groups[r][g] < found.groups[r][g + 1] ? 1 << g : 0;
        }
    }
    assert_int_equal(used, groups_used);
    assert_null(memchr(seen, 0, COUNT));
    lr_listmode_events_finish(&found);
}

static void test_arranged(void **state)
{
    check_arranged(1, 0x2a);
    params.num_ranges = 7;
    check_arranged(7, 0x2a);
    params.info = NULL;
    check_arranged(7, 0x15);
}

static void test_ranges(void **state)
{
    static const int64_t uneven[5] = {0, 10, 10, 4000, COUNT};
    struct lr_listmode_events found;
    params.ranges = uneven;
    params.num_ranges = 4;
    check_arranged(4, 0x2a & 0x3f);
    params.ranges = NULL;
    params.num_ranges = 3;
    assert_ok(events_init(&found, &params));
    assert_ints(found.offsets[1], 1667, found.offsets[2], 3334);
    lr_listmode_events_finish(&found);
}

/* There are so many events that several threads arrange them. Events with equal centres keep their order. The result
 * must equal that of one thread, which the tests above check event by event. */
static void test_threads(void **state)
{
    enum { MANY = 300000 };
    static const int threads[] = {2, 7, 40};
    static const int64_t uneven[4] = {0, 20, 90000, MANY};
    struct lr_listmode_events alone, together;
    uint64_t seed = 5;
    events = case_events(MANY, &seed);
    for (int k = 1; k < MANY; k += 3) events[k] = events[k - 1];
    params.events = events;
    params.count = MANY;
    params.ranges = uneven;
    params.num_ranges = 3;
    params.threads = 1;
    assert_ok(events_init(&alone, &params));
    for (int k = 0; k < length_of(threads); k++) {
        params.threads = threads[k];
        assert_ok(events_init(&together, &params));
        expect_same_events(&together, &alone);
        lr_listmode_events_finish(&together);
    }
    lr_listmode_events_finish(&alone);
}

/* --- time of flight by kinds of crystals --- */

/* Panels along x have kind 0 and panels along y kind 1; the others have no kind. */
static void test_kinds(void **state)
{
    unsigned char kind_of[PANELS * PANEL];
    float even[6] = {-50, -30, -10, 10, 30, 50}, uneven[6] = {-50, -40, -10, 10, 30, 150};
    lr_tof_bins tof[4] = {{.num_bins = 5, .resolution_ps = 200, .edges_mm = even},
                          {.num_bins = 5, .resolution_ps = 300},
                          {.num_bins = 1},
                          {.num_bins = 5, .edges_mm = uneven}};
    struct lr_listmode_events found;
    for (int c = 0; c < PANELS * PANEL; c++)
        kind_of[c] = (unsigned char)(c / PANEL / 2 < 2 ? c / PANEL / 2 : LR_EVENTS_NO_KIND);
    info.kinds = (lr_event_kinds){.count = 2, .num_crystals = PANELS * PANEL, .kind_of = kind_of, .tof = tof};
    scanner->tof_resolution_ps = 500;
    assert_ok(events_init(&found, &params));
    const int panels[6][2] = {{0, 1}, {1, 2}, {2, 1}, {3, 2}, {0, 4}, {5, 4}};
    const double resolution_ps[6] = {200, 300, 0, 500, 0, 0}, bin_mm[6] = {20, 0, 0, 40, 0, 0};
    for (int k = 0; k < 6; k++) {
        const int32_t crystals[2] = {panels[k][0] * PANEL, panels[k][1] * PANEL};
        const double fwhm_mm = 0.149896229 * resolution_ps[k];
        assert_true(fabs(lr_listmode_sigma(&found, crystals) - fwhm_mm / 2.35482004503) < 1e-9);
        assert_close(lr_listmode_bin(&found, crystals), bin_mm[k], 1e-6);
    }
    assert_close(found.reach_mm, 3 * 0.149896229 * 500 / 2.35482004503 + 20, 1e-9);
    assert_says(test_log.warning, "from 10 to 120 mm wide");
    lr_listmode_events_finish(&found);
    scanner->tof_resolution_ps = 0;
    assert_int_equal(events_init(&found, &params), LR_BAD_INPUT);
    lr_listmode_events_finish(&found);
}

/* --- what is refused --- */

static void refuse(lr_status status, const char *sentence)
{
    struct lr_listmode_events found;
    assert_fails(events_init(&found, &params), status, &test_log, sentence);
    lr_listmode_events_finish(&found);
}

static void test_events_refused(void **state)
{
    lr_event *event = &events[77];
    const lr_event good = *event;
    spoilt(event->crystals[1] = good.crystals[0], refuse(LR_BAD_INPUT, "at the same place"));
    event->crystals[1] = PANELS * PANEL;
    refuse(LR_BAD_INPUT, "event 77 names crystal 2646: the scanner has crystals 0 to 2645");
    spoilt(event->crystals[1] = -1, refuse(LR_BAD_INPUT, "names crystal -1"));
    *event = good;
    spoilt(event->tof_mm = NAN, refuse(LR_BAD_INPUT, "event 77 has a time of flight of"));
    spoilt(event->tof_mm = INFINITY, refuse(LR_BAD_INPUT, "not a finite number"));
    params.info = NULL; /* without info, tof_mm is not read */
    check_arranged(1, 0x15);
    params.info = &info;
    *event = good;
    spoilt(info.tof_resolution_ps = 0, refuse(LR_BAD_INPUT, "resolution"));
    scanner->tof_resolution_ps = 300;
    check_arranged(1, 0x2a);
    spoilt(params.count = 0, refuse(LR_USAGE, "needs events"));
}

static void test_ranges_refused(void **state)
{
    static const int64_t wrong[4][3] = {{0, 20, 10}, {1, 20, COUNT}, {0, 20, COUNT - 1}, {0, COUNT + 1, COUNT}};
    static const char *sentences[4] = {"range 1 of the events ends at 10", "from event 0", "the last one, 5000",
                                       "range 1 of the events ends"};
    params.num_ranges = 2;
    for (int k = 0; k < 4; k++) spoilt(params.ranges = wrong[k], refuse(LR_USAGE, sentences[k]));
    spoilt(params.num_ranges = -1, refuse(LR_USAGE, "-1 ranges"));
}

static void test_tubes(void **state)
{
    static const double below[3] = {1, -0.1, 0}, nowhere[3] = {0}, endless[2] = {1, INFINITY};
    static const struct {
        lr_listmode_tube tube;
        const char *sentence;
    } refused[] = {/* voxels of 4 x 5 x 6 mm: the diagonal of the largest face is 7.81 mm */
                   {{.width_mm = 7.8}, "at least 7.81 mm"},
                   {{.width_mm = 4001, .as_paper = true}, "1000 voxels of 4 mm"},
                   {{.width_mm = -1}, "cannot be -1 mm wide"},
                   {{.fwhm_mm = NAN}, "FWHM"},
                   {{.table = case_table, .table_count = 5}, "width"},
                   {{.width_mm = 9, .table = below, .table_count = 1}, "two"},
                   {{.width_mm = 9, .table_count = 3}, "needs the values"},
                   {{.width_mm = 9, .table = below, .table_count = 3}, "value 1 of the tube's table is -0.1"},
                   {{.width_mm = 9, .table = endless, .table_count = 2}, "finite"},
                   {{.width_mm = 9, .table = nowhere, .table_count = 3}, "0 everywhere"}};
    struct lr_listmode_model model;
    for (int k = 0; k < length_of(refused); k++) {
        params.tube = refused[k].tube;
        assert_fails(lr_listmode_model_init(&model, &params), LR_USAGE, &test_log, refused[k].sentence);
        lr_listmode_model_finish(&model);
    }
    params.tube = (lr_listmode_tube){.width_mm = 1, .as_paper = true};
    assert_ok(lr_listmode_model_init(&model, &params));
    lr_listmode_model_finish(&model);
    params.tube = (lr_listmode_tube){0};
    assert_ok(lr_listmode_model_init(&model, &params));
    assert_close(model.tube.fwhm_mm, 6.0, 1e-12); /* the longest edge; half of the pitch is only 5 mm */
    assert_close(exp(-log(2.0) * pow(model.tube.width_mm / model.tube.fwhm_mm, 2)), 0.01, 1e-6);
    lr_listmode_model_finish(&model);
    params.kernel = (lr_listmode_kernel)99;
    assert_int_equal(lr_listmode_model_init(&model, &params), LR_USAGE);
    lr_listmode_model_finish(&model);
}

/* --- lines near a set of voxels and far from it, compared with distances of points on the lines --- */

enum { SETS = 20, LINES = 30, POINTS = 60, NX = 9, NY = 150, NZ = 7 };

/* Distance from a point to the nearest voxel of the set. */
static double distance_to(const lr_grid *of, const unsigned char *labels, const double point[3])
{
    double least = 1e30;
    for (int64_t v = 0; v < lr_grid_num_voxels(of); v++) {
        double centre[3], square = 0;
        if (labels[v] != 1) continue;
        lr_grid_voxel_centre(of, v, centre);
        for (int k = 0; k < 3; k++) {
            const double away = fmax(0, fabs(point[k] - centre[k]) - 0.5 * of->voxel_mm[k]);
            square += away * away;
        }
        least = fmin(least, square);
    }
    return sqrt(least);
}

/* No line within the given distance is left out. Of the lines beyond it, few are taken, and none that is more than
 * about two cells farther away. */
static void test_no_line_is_missed(void **state)
{
    grid = lr_grid_centred((const int[3]){NX, NY, NZ}, (const double[3]){3, 0.5, 2});
    static unsigned char labels[NX * NY * NZ];
    uint64_t seed = 7;
    int near = 0, far = 0;
    for (int set = 0; set < SETS; set++) {
        struct lr_listmode_region region;
        const struct lr_listmode_labelled voxels = {
            .grids = {grid}, .num_grids = 1, .labels = labels, .label = 1, .last = {NX, NY, NZ}};
        for (int64_t v = 0; v < lr_grid_num_voxels(&grid); v++) labels[v] = 0;
        for (int k = 0; k < 8; k++) labels[(int64_t)random_between(&seed, 0, NX * NY * NZ)] = 1;
        assert_ok(lr_listmode_region_init(&region, &voxels, 2, NULL));
        const double cell = hypot(hypot(region.cell_mm[0], region.cell_mm[1]), region.cell_mm[2]);
        for (int line = 0; line < LINES; line++) {
            double ends[2][3], least = 1e30;
            const double reach_mm = random_between(&seed, 0, 4);
            for (int k = 0; k < 3; k++) {
                ends[0][k] = random_between(&seed, -40, 40);
                ends[1][k] = line % 3 == k ? ends[0][k] : random_between(&seed, -40, 40);
            }
            for (int k = 0; k <= POINTS; k++) {
                double point[3];
                for (int axis = 0; axis < 3; axis++)
                    point[axis] = ends[0][axis] + (ends[1][axis] - ends[0][axis]) * k / ((double)POINTS);
                least = fmin(least, distance_to(&grid, labels, point));
            }
            const bool is_near = lr_listmode_region_is_near(&region, ends[0], ends[1], reach_mm);
            const double spacing = 80 * sqrt(3) / ((double)POINTS);
            assert_all(is_near || least > reach_mm, !is_near || least < reach_mm + 2.1 * cell + 0.5 * spacing);
            near += is_near;
            far += !is_near;
        }
        lr_listmode_region_finish(&region);
    }
    print_message("%d near, %d far\n", near, far);
    assert_true(near > 30 && far > 30);
}

#define EVENTS(test) CASE_AFTER(set_up, test)

test_main("events of list mode",
          EACH(EVENTS, test_arranged, test_ranges, test_threads, test_kinds, test_events_refused, test_ranges_refused,
               test_tubes),
          CASE(test_no_line_is_missed))
