/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Events of list mode: their arrangement, and errors for events that are refused. */
#include "listmode/cases.h"

enum { COUNT = 5000 };

/* A scanner of its own for each test, and what is asked of list mode. */
struct made {
    lr_scanner *scanner;
    lr_lors lors;
    lr_grid grid;
    lr_event *events;
    lr_events_info info;
    struct test_log log;
    lr_listmode_params params;
};

static int setup(void **state)
{
    struct made *made = calloc(1, sizeof(*made));
    uint64_t seed = 3;
    assert_non_null(made);
    made->scanner = case_scanner();
    made->lors = (lr_lors){.scanner = made->scanner};
    made->grid = case_grid();
    made->events = case_events(COUNT, &seed);
    made->info = (lr_events_info){.has_tof = true, .tof_resolution_ps = 400};
    test_log_init(&made->log);
    made->params = (lr_listmode_params){.lors = &made->lors,
                                        .grid = &made->grid,
                                        .events = made->events,
                                        .count = COUNT,
                                        .info = &made->info,
                                        .log = &made->log.log};
    *state = made;
    return 0;
}

static int teardown(void **state)
{
    struct made *made = *state;
    free(made->events);
    lr_scanner_destroy(made->scanner);
    free(made);
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

static double length_of(const lr_event *event)
{
    double square = 0;
    for (int k = 0; k < 3; k++) square += run_along(event, k) * run_along(event, k);
    return sqrt(square);
}

static double centre_along(const lr_event *event, int axis)
{
    double a[3];
    case_point(event->crystals[0], a);
    return a[axis] + run_along(event, axis) * (0.5 + (double)event->tof_mm / length_of(event));
}

static void check_group(const struct made *made, const struct lr_listmode_events *events, int r, int group, char *seen)
{
    double before = -1e30;
    const int axis = lr_listmode_group_axis(group);
    for (int64_t k = events->groups[r][group]; k < events->groups[r][group + 1]; k++) {
        const int64_t number = events->offsets[r] + events->number[k];
        const lr_event *event = &made->events[number];
        assert_true(number < events->offsets[r + 1] && !seen[number]);
        seen[number] = 1;
        assert_int_equal(events->crystals[0][k], event->crystals[0]);
        assert_int_equal(events->crystals[1][k], event->crystals[1]);
        for (int other = 0; other < 3; other++)
            assert_true(fabs(run_along(event, axis)) >= fabs(run_along(event, other)));
        if (lr_listmode_group_has_tof(group)) {
            assert_true(events->tof_mm[k] == event->tof_mm);
            assert_true(centre_along(event, axis) >= before - 1e-4);
            before = centre_along(event, axis);
        } else {
            assert_true((double)number > before);
            before = (double)number;
        }
    }
}

static void check_arranged(struct made *made, int64_t num_ranges, int groups_used)
{
    struct lr_listmode_events events;
    char *seen = calloc(COUNT, 1);
    int used = 0;
    assert_int_equal(lr_listmode_events_init(&events, &made->params), LR_OK);
    assert_int_equal(events.layout.num_pairs, num_ranges);
    assert_int_equal(events.layout.count, COUNT);
    for (int r = 0; r < num_ranges; r++) {
        assert_int_equal(events.groups[r][0], events.offsets[r]);
        assert_int_equal(events.groups[r][LR_LISTMODE_GROUPS], events.offsets[r + 1]);
        for (int g = 0; g < LR_LISTMODE_GROUPS; g++) {
            check_group(made, &events, r, g, seen);
            used += r == 0 && events.groups[r][g] < events.groups[r][g + 1] ? 1 << g : 0;
        }
    }
    assert_int_equal(used, groups_used);
    assert_null(memchr(seen, 0, COUNT));
    free(seen);
    lr_listmode_events_finish(&events);
}

static void test_arranged(void **state)
{
    struct made *made = *state;
    check_arranged(made, 1, 0x2a);
    made->params.num_ranges = 7;
    check_arranged(made, 7, 0x2a);
    made->params.info = NULL;
    check_arranged(made, 7, 0x15);
}

static void test_ranges(void **state)
{
    struct made *made = *state;
    static const int64_t uneven[5] = {0, 10, 10, 4000, COUNT};
    struct lr_listmode_events events;
    made->params.ranges = uneven;
    made->params.num_ranges = 4;
    check_arranged(made, 4, 0x2a & 0x3f);
    made->params.ranges = NULL;
    made->params.num_ranges = 3;
    assert_int_equal(lr_listmode_events_init(&events, &made->params), LR_OK);
    assert_int_equal(events.offsets[1], 1667);
    assert_int_equal(events.offsets[2], 3334);
    lr_listmode_events_finish(&events);
}

/* The order is that of one thread, whose events the tests above look at one by one. */
static void check_same(const struct lr_listmode_events *a, const struct lr_listmode_events *b)
{
    const size_t bytes = (size_t)a->layout.count * sizeof(int32_t);
    const size_t groups = (size_t)a->layout.num_pairs * sizeof(a->groups[0]);
    assert_memory_equal(a->groups, b->groups, groups);
    assert_memory_equal(a->crystals[0], b->crystals[0], bytes);
    assert_memory_equal(a->crystals[1], b->crystals[1], bytes);
    assert_memory_equal(a->tof_mm, b->tof_mm, bytes);
    assert_memory_equal(a->number, b->number, bytes);
}

/* The events are so many that several threads arrange them. Some events have equal centres and keep their order. */
static void test_threads(void **state)
{
    struct made *made = *state;
    enum { MANY = 300000 };
    static const int threads[] = {2, 7, 40};
    static const int64_t uneven[4] = {0, 20, 90000, MANY};
    struct lr_listmode_events alone, together;
    uint64_t seed = 5;
    free(made->events);
    made->events = case_events(MANY, &seed);
    for (int k = 1; k < MANY; k += 3) made->events[k] = made->events[k - 1];
    made->params.events = made->events;
    made->params.count = MANY;
    made->params.ranges = uneven;
    made->params.num_ranges = 3;
    made->params.threads = 1;
    assert_int_equal(lr_listmode_events_init(&alone, &made->params), LR_OK);
    for (size_t k = 0; k < sizeof(threads) / sizeof(threads[0]); k++) {
        made->params.threads = threads[k];
        assert_int_equal(lr_listmode_events_init(&together, &made->params), LR_OK);
        check_same(&alone, &together);
        lr_listmode_events_finish(&together);
    }
    lr_listmode_events_finish(&alone);
}

/* --- time of flight by kinds of crystals --- */

/* Panels along x are of kind 0, those along y of kind 1, the others of none. */
static void kinds_of(lr_event_kinds *kinds, unsigned char *kind_of, lr_tof_bins *tof)
{
    *kinds = (lr_event_kinds){.count = 2, .num_crystals = PANELS * PANEL, .kind_of = kind_of, .tof = tof};
    for (int c = 0; c < kinds->num_crystals; c++) {
        const int axis = c / PANEL / 2;
        kind_of[c] = axis < 2 ? (unsigned char)axis : (unsigned char)LR_EVENTS_NO_KIND;
    }
}

static void test_kinds(void **state)
{
    struct made *made = *state;
    unsigned char kind_of[PANELS * PANEL];
    float even[6] = {-50, -30, -10, 10, 30, 50}, uneven[6] = {-50, -40, -10, 10, 30, 150};
    lr_tof_bins tof[4] = {{.num_bins = 5, .resolution_ps = 200, .edges_mm = even},
                          {.num_bins = 5, .resolution_ps = 300},
                          {.num_bins = 1},
                          {.num_bins = 5, .edges_mm = uneven}};
    struct lr_listmode_events events;
    made->scanner->tof_resolution_ps = 500;
    kinds_of(&made->info.kinds, kind_of, tof);
    assert_int_equal(lr_listmode_events_init(&events, &made->params), LR_OK);
    const int panels[6][2] = {{0, 1}, {1, 2}, {2, 1}, {3, 2}, {0, 4}, {5, 4}};
    const double resolution_ps[6] = {200, 300, 0, 500, 0, 0}, bin_mm[6] = {20, 0, 0, 40, 0, 0};
    for (int k = 0; k < 6; k++) {
        const int32_t crystals[2] = {panels[k][0] * PANEL, panels[k][1] * PANEL};
        const double fwhm_mm = 0.149896229 * resolution_ps[k];
        assert_true(fabs(lr_listmode_sigma(&events, crystals) - fwhm_mm / 2.35482004503) < 1e-9);
        assert_close(lr_listmode_bin(&events, crystals), bin_mm[k], 1e-6);
    }
    assert_close(events.reach_mm, 3 * 0.149896229 * 500 / 2.35482004503 + 20, 1e-9);
    assert_non_null(strstr(made->log.warning, "from 10 to 120 mm wide"));
    lr_listmode_events_finish(&events);
    made->scanner->tof_resolution_ps = 0;
    assert_int_equal(lr_listmode_events_init(&events, &made->params), LR_BAD_INPUT);
    lr_listmode_events_finish(&events);
}

/* --- what is refused --- */

static void refuse(struct made *made, lr_status status, const char *sentence)
{
    struct lr_listmode_events events;
    test_log_init(&made->log);
    made->params.log = &made->log.log;
    assert_int_equal(lr_listmode_events_init(&events, &made->params), status);
    assert_int_equal(made->log.status, status);
    if (strstr(made->log.error, sentence) == NULL) fail_msg("'%s' does not say '%s'", made->log.error, sentence);
    lr_listmode_events_finish(&events);
}

static void test_events_refused(void **state)
{
    struct made *made = *state;
    const lr_event good = made->events[77];
    made->events[77].crystals[1] = good.crystals[0];
    refuse(made, LR_BAD_INPUT, "at the same place");
    made->events[77].crystals[1] = PANELS * PANEL;
    refuse(made, LR_BAD_INPUT, "event 77 names crystal 2646: the scanner has crystals 0 to 2645");
    made->events[77].crystals[1] = -1;
    refuse(made, LR_BAD_INPUT, "names crystal -1");
    made->events[77] = good;
    made->events[77].tof_mm = NAN;
    refuse(made, LR_BAD_INPUT, "event 77 has a time of flight of");
    made->events[77].tof_mm = INFINITY;
    refuse(made, LR_BAD_INPUT, "not a finite number");
    made->params.info = NULL; /* nobody looks at it then */
    check_arranged(made, 1, 0x15);
    made->params.info = &made->info;
    made->events[77] = good;
    made->info.tof_resolution_ps = 0;
    refuse(made, LR_BAD_INPUT, "resolution");
    made->scanner->tof_resolution_ps = 300;
    check_arranged(made, 1, 0x2a);
    made->params.count = 0;
    refuse(made, LR_USAGE, "needs events");
}

static void test_ranges_refused(void **state)
{
    struct made *made = *state;
    static const int64_t wrong[4][3] = {{0, 20, 10}, {1, 20, COUNT}, {0, 20, COUNT - 1}, {0, COUNT + 1, COUNT}};
    static const char *sentences[4] = {"range 1 of the events ends at 10", "from event 0", "the last one, 5000",
                                       "range 1 of the events ends"};
    made->params.num_ranges = 2;
    for (int k = 0; k < 4; k++) {
        made->params.ranges = wrong[k];
        refuse(made, LR_USAGE, sentences[k]);
    }
    made->params.num_ranges = -1;
    refuse(made, LR_USAGE, "-1 ranges");
}

static void refuse_tube(struct made *made, const lr_listmode_tube *tube, const char *sentence)
{
    struct lr_listmode_model model;
    test_log_init(&made->log);
    made->params.tube = *tube;
    assert_int_equal(lr_listmode_model_init(&model, &made->params), LR_USAGE);
    if (strstr(made->log.error, sentence) == NULL) fail_msg("'%s' does not say '%s'", made->log.error, sentence);
    lr_listmode_model_finish(&model);
}

static void test_tubes(void **state)
{
    struct made *made = *state;
    static const double below[3] = {1, -0.1, 0}, nowhere[3] = {0}, endless[2] = {1, INFINITY};
    struct lr_listmode_model model;
    /* voxels of 4 x 5 x 6 mm: a face is 7.81 mm across */
    refuse_tube(made, &(lr_listmode_tube){.width_mm = 7.8}, "at least 7.81 mm");
    refuse_tube(made, &(lr_listmode_tube){.width_mm = 4001, .as_paper = true}, "1000 voxels of 4 mm");
    refuse_tube(made, &(lr_listmode_tube){.width_mm = -1}, "cannot be -1 mm wide");
    refuse_tube(made, &(lr_listmode_tube){.fwhm_mm = NAN}, "FWHM");
    refuse_tube(made, &(lr_listmode_tube){.table = case_table, .table_count = 5}, "width");
    refuse_tube(made, &(lr_listmode_tube){.width_mm = 9, .table = below, .table_count = 1}, "two");
    refuse_tube(made, &(lr_listmode_tube){.width_mm = 9, .table_count = 3}, "needs the values");
    refuse_tube(made, &(lr_listmode_tube){.width_mm = 9, .table = below, .table_count = 3},
                "value 1 of the tube's table is -0.1");
    refuse_tube(made, &(lr_listmode_tube){.width_mm = 9, .table = endless, .table_count = 2}, "finite");
    refuse_tube(made, &(lr_listmode_tube){.width_mm = 9, .table = nowhere, .table_count = 3}, "0 everywhere");
    made->params.tube = (lr_listmode_tube){.width_mm = 1, .as_paper = true};
    assert_int_equal(lr_listmode_model_init(&model, &made->params), LR_OK);
    lr_listmode_model_finish(&model);
    made->params.tube = (lr_listmode_tube){0};
    assert_int_equal(lr_listmode_model_init(&model, &made->params), LR_OK);
    assert_close(model.tube.fwhm_mm, 6.0, 1e-12); /* an edge; half of a pitch is 5 mm */
    assert_close(exp(-log(2.0) * pow(model.tube.width_mm / model.tube.fwhm_mm, 2)), 0.01, 1e-6);
    lr_listmode_model_finish(&model);
    made->params.kernel = (lr_listmode_kernel)99;
    assert_int_equal(lr_listmode_model_init(&model, &made->params), LR_USAGE);
    lr_listmode_model_finish(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_arranged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kinds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_events_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranges_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tubes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
