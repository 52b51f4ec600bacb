/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Numbers of LORs, and which LORs are in coincidence. Expected results are computed here from the definition of a
 * module, crystal by crystal. Values per LOR: binning and expanding. */
#include "cases.h"

#include "model/scanner/coincidence.h"
#include "scanners.h"

#include <lr/events.h>

/* Centre of the volume of crystal n of a module, computed from the definition. */
static void crystal_centre(const lr_module *m, int n, double out[3])
{
    const double p = n % m->crystals[0], q = n / m->crystals[0];
    for (int k = 0; k < 3; k++) {
        out[k] = m->centre_mm[k] + ((p + 0.5) - m->crystals[0] / 2.0) * m->pitch_mm[0] * m->u[k] +
                 ((q + 0.5) - m->crystals[1] / 2.0) * m->pitch_mm[1] * m->v[k] - m->depth_mm / 2.0 * m->normal[k];
    }
}

/* Distance of a line from the z axis: a . (d x z) / |d x z|. */
static double distance_to_axis(const double a[3], const double b[3])
{
    const double normal[2] = {b[1] - a[1], -(b[0] - a[0])};
    const double length = sqrt(normal[0] * normal[0] + normal[1] * normal[1]);
    return length < 1e-9 ? sqrt(a[0] * a[0] + a[1] * a[1]) : fabs(a[0] * normal[0] + a[1] * normal[1]) / length;
}

/* The three rules for crystals a of module i and b of module j. */
static bool rules_hold(const lr_scanner *scanner, int i, int a, int j, int b)
{
    const lr_module *mi = &scanner->modules[i], *mj = &scanner->modules[j];
    const lr_coincidence *rules = &scanner->coincidence;
    double ca[3], cb[3];
    crystal_centre(mi, a, ca);
    crystal_centre(mj, b, cb);
    if (rules->field_of_view_mm > 0 && distance_to_axis(ca, cb) > rules->field_of_view_mm / 2 + 1e-9) return false;
    const int ring_a = mi->first_crystal_ring + a / mi->crystals[0];
    const int ring_b = mj->first_crystal_ring + b / mj->crystals[0];
    if (rules->limits_ring_difference && abs(ring_a - ring_b) > rules->max_ring_difference) return false;
    int apart = abs(mi->position - mj->position);
    if (scanner->num_positions - apart < apart) apart = scanner->num_positions - apart;
    return rules->min_module_difference == 0 || apart >= rules->min_module_difference;
}

/* Checks all LORs of one module pair: the pair is listed exactly if a LOR is in coincidence, LORs are numbered in
 * order, and each bit is as expected. Returns the number of LORs in coincidence. */
static int64_t check_pair(const lr_lors *lors, int i, int j, int64_t *next)
{
    const lr_scanner *scanner = lors->scanner;
    const int *first = scanner->first_crystal, num_i = first[i + 1] - first[i], num_j = first[j + 1] - first[j];
    const int64_t pair = lr_lors_pair(lors, i, j);
    int64_t allowed = 0;
    assert_int_equal(pair, lr_lors_pair(lors, j, i));
    for (int a = 0; a < num_i; a++) {
        for (int b = 0; b < num_j; b++) {
            const bool expected = rules_hold(scanner, i, a, j, b);
            allowed += expected;
            const int64_t lor = lr_lors_number(lors, first[i] + a, first[j] + b);
            assert_int_equal(lor, lr_lors_number(lors, first[j] + b, first[i] + a));
            assert_int_equal(lor, pair < 0 ? -1 : *next + (int64_t)a * num_j + b);
            if (pair < 0) continue;
            if (lr_lors_in_coincidence(lors, lor) != expected)
                fail_msg("modules %d %d, crystals %d %d: expected %d", i, j, a, b, expected);
            const lr_lor spelled = lr_lors_describe(lors, lor);
            assert_true(spelled.module_i == i && spelled.module_j == j);
            assert_int_equal(spelled.q * scanner->modules[i].crystals[0] + spelled.p, a);
            assert_int_equal(spelled.s * scanner->modules[j].crystals[0] + spelled.r, b);
        }
    }
    assert_int_equal(pair >= 0, allowed > 0);
    if (pair >= 0) {
        assert_true(lors->pairs[pair][0] == i && lors->pairs[pair][1] == j);
        assert_int_equal(lors->offsets[pair], *next);
        *next += (int64_t)num_i * num_j;
    }
    return allowed;
}

/* Events of one crystal with all crystals, and one event with an invalid crystal number. */
static void check_events(const lr_lors *lors, int32_t crystal, lr_event *events)
{
    const int count = lors->scanner->num_crystals;
    int64_t expected = 0;
    for (int32_t other = 0; other < count; other++) {
        const int64_t lor = lr_lors_number(lors, crystal, other);
        expected += lor >= 0 && lr_lors_in_coincidence(lors, lor);
        events[other] = (lr_event){.crystals = {crystal, other}};
    }
    events[count] = (lr_event){.crystals = {crystal, crystal % 2 == 0 ? count : -1}};
    const lr_event_span span = {.events = events, .count = count + 1, .threads = 1};
    assert_int_equal(lr_events_count_joined(lors, &span), expected);
}

/* Checks every LOR of a scanner. Returns the number of LORs in coincidence. */
static int64_t check_all(const lr_scanner *scanner)
{
    lr_lors *lors = keep(lr_lors_create(scanner, NULL));
    int64_t next = 0, allowed = 0, pairs = 0;
    for (int i = 0; i < scanner->num_modules; i++) {
        assert_int_equal(lr_lors_pair(lors, i, i), -1);
        for (int j = i + 1; j < scanner->num_modules; j++) {
            const int64_t pair = lr_lors_pair(lors, i, j);
            assert_true(pair < 0 || pair == pairs); /* sorted by (i, j) */
            pairs += pair >= 0;
            allowed += check_pair(lors, i, j, &next);
        }
    }
    assert_ints(lors->num_pairs, pairs, lors->count, next);
    lr_lors_size size;
    assert_ok(lr_lors_count(scanner, NULL, &size, NULL));
    assert_true(size.num_pairs == pairs && size.num_lors == next);
    assert_ints(lors->offsets[pairs], next, lors->masks->num_pairs, pairs);
    lr_event *events = kept(scanner->num_crystals + 1, sizeof(*events));
    for (int32_t crystal = 0; crystal < scanner->num_crystals; crystal++) check_events(lors, crystal, events);
    return allowed;
}

static lr_scanner *small_ring(double field_mm, int min_modules, int max_rings)
{
    lr_scanner *scanner = keep(scanner_from(
        "ring: {radius_mm: 40, modules: 8, first_angle_deg: 11, rings: 2, ring_pitch_mm: 24}\nmodule: {crystals: [[3, "
        "2], [2, 3]], block_gap_mm: [1, 0.7], pitch_mm: [4, 4.5], face_mm: [3.6, 4], depth_mm: 12}"));
    scanner->coincidence = (lr_coincidence){field_mm, min_modules, max_rings >= 0, max_rings};
    return scanner;
}

static void rules_of_a_ring(void **state)
{
    const int crystals = 16 * 25;
    /* Without rules: all pairs of crystals, except those in the same block of 6, 9, 4 or 6. */
    const int64_t within = 16 * (15 + 36 + 6 + 15);
    assert_int_equal(check_all(small_ring(0, 0, -1)), crystals * (crystals - 1) / 2 - within);
    const int64_t field = check_all(small_ring(50, 0, -1)), modules = check_all(small_ring(0, 3, -1));
    const int64_t rings = check_all(small_ring(0, 0, 4)), all = check_all(small_ring(50, 3, 4));
    assert_true(all > 0 && all < field && all < modules && all < rings);
    check_all(small_ring(50, 0, 0));
    check_all(small_ring(1, 4, 0));
}

/* Modules with random places, sizes and tilts: masks are stored with all bits. */
static void field_of_view_of_tilted_modules(void **state)
{
    uint64_t random = test_seed();
    for (int trial = 0; trial < 6; trial++) {
        lr_module modules[7];
        for (int m = 0; m < 7; m++) {
            const double angle = (m + 0.4 * test_random(&random)) * acos(-1.0) / 3.5;
            modules[m] = tilted_module(90 * cos(angle), 90 * sin(angle), 40 * test_random(&random) - 20,
                                       angle * 180 / acos(-1.0), m == 3 ? 0.0 : 60 * test_random(&random) - 30,
                                       1 + (int)(5 * test_random(&random)), 1 + (int)(6 * test_random(&random)));
        }
        check_all(
            keep(lr_scanner_create(&filled(lr_scanner_params, .modules = modules, .num_modules = 7,
                                           .coincidence = {.field_of_view_mm = 20 + 100 * test_random(&random)}))));
    }
}

/* Crystals one above another, with lines parallel to z, and end caps. */
static void lines_along_the_axis(void **state)
{
    for (int k = 0; k < 2; k++) { /* the centres of the crystals are at a radius of 23 mm or more */
        lr_lors *lors = lors_from(
            scanner_from("ring: {radius_mm: 20, modules: 4, rings: 2, ring_pitch_mm: 9}\nmodule: {crystals: [3, 2], "
                         "pitch_mm: [4, 4], face_mm: [4, 4], depth_mm: 6}\ncoincidence: {field_of_view_mm: %g}",
                         k == 0 ? 45.9 : 46.0));
        /* middle column of module 0 and of module 4, which is above module 0 */
        const int64_t lor = lr_lors_number(lors, 1, lors->scanner->first_crystal[4] + 1);
        assert_int_equal(lor >= 0 && lr_lors_in_coincidence(lors, lor), k);
        check_all(lors->scanner);
    }
    const lr_module caps[2] = {{{0, 0, 50}, {1, 0, 0}, {0, 1, 0}, .crystals = {5, 4}, {4, 4}, {4, 4}, 5},
                               {{0, 0, -50}, {1, 0, 0}, {0, 1, 0}, .crystals = {5, 4}, {4, 4}, {4, 4}, 5}};
    check_all(keep(lr_scanner_create(
        &(lr_scanner_params){.modules = caps, .num_modules = 2, .coincidence = {.field_of_view_mm = 9}})));
}

/* A line that just touches the field of view counts as inside: columns of opposed modules pass the axis at multiples of
 * half the pitch. */
static void field_of_view_edge_counts(void **state)
{
    const double fields_mm[] = {11.99, 12.0 - 1e-8, 12.0, 12.01};
    for (int k = 0; k < 4; k++) {
        lr_scanner *scanner =
            keep(scanner_from("ring: {radius_mm: 50, modules: 2}\nmodule: {crystals: [4, 1], pitch_mm: [4, 4], "
                              "face_mm: [4, 4], depth_mm: 10}\ncoincidence: {field_of_view_mm: %.17g}",
                              fields_mm[k]));
        /* two lines are 6 mm from the axis: columns 0 and 3 of module 0 with 3 and 0 of module 1 */
        assert_int_equal(check_all(scanner), k < 2 ? 14 : 16);
    }
}

/* Numbers of LORs of whole scanners as in the literature, in little memory. */
static void whole_scanners(void **state)
{
    lr_scanner *scanner = keep(scanner_from("ring: {radius_mm: 465, modules: 24}\nmodule: {crystals: [27, 60], "
                                            "pitch_mm: [4.3, 4.3], face_mm: [4, 4], depth_mm: 30}"));
    lr_lors *lors = keep(lr_lors_create(scanner, NULL));
    assert_int_equal(scanner->num_crystals, 38880);
    const int64_t within_modules = 24 * ((int64_t)1620 * 1619 / 2);
    assert_ints(lors->count + within_modules, 755807760, lors->num_pairs, 24 * 23 / 2);
    for (int64_t pair = 0; pair < lors->num_pairs; pair++) assert_int_equal(lors->masks->pairs[pair].kind, LR_MASK_ALL);
    scanner = keep(
        scanner_from("ring: {radius_mm: 328, modules: 56}\nmodule: {crystals: [8, 64], pitch_mm: [4.0625, 4.0625], "
                     "face_mm: [4, 4], depth_mm: 20}\ncoincidence: {field_of_view_mm: 594, max_ring_difference: 60}"));
    lors = keep(lr_lors_create(scanner, NULL));
    assert_int_equal(scanner->num_crystals, 28672);
    const int64_t opposite = lr_lors_pair(lors, 0, 28);
    int planes = 0;
    for (int q = 0; q < 64; q++)
        for (int s = 0; s < 64; s++) planes += lr_coincidence_allows(lors, opposite, 3, q, 4, s);
    assert_int_equal(planes, 4084); /* 64 x 64 without those more than 60 apart */
    assert_true(lors->masks->num_words < 4096);
}

/* Equal masks are stored once: in a ring they depend only on the angle between two modules. The tilt makes them
 * inseparable. */
static void equal_masks_are_shared(void **state)
{
    lr_module modules[6];
    for (int m = 0; m < 6; m++) {
        const double angle = m * acos(-1.0) / 3;
        modules[m] = tilted_module(60 * cos(angle), 60 * sin(angle), 0, m * 60.0, 10, 5, 4);
    }
    lr_lors *lors = lors_from(lr_scanner_create(
        &(lr_scanner_params){.modules = modules, .num_modules = 6, .coincidence = {.field_of_view_mm = 11}}));
    const struct lr_coincidence_masks *masks = lors->masks;
    const struct lr_pair_mask *opposite = &masks->pairs[lr_lors_pair(lors, 0, 3)];
    assert_ints(opposite->kind, LR_MASK_FULL, masks->pairs[lr_lors_pair(lors, 1, 4)].offset_a, opposite->offset_a);
    assert_int_equal(masks->pairs[lr_lors_pair(lors, 2, 5)].offset_a, opposite->offset_a);
    check_all(lors->scanner);
}

static bool stop(void *user, const char *what, double done, double total)
{
    ++*(int *)user;
    assert_all(what != NULL, done <= total);
    return false;
}

static void work_may_be_stopped(void **state)
{
    lr_scanner *scanner = keep(scanner_from("ring: {radius_mm: 60, modules: 8}\nmodule: {crystals: [2, 2], pitch_mm: "
                                            "[4, 4], face_mm: [4, 4], depth_mm: 10}"));
    int asked = 0;
    const lr_progress progress = {stop, &asked};
    struct test_log log = TEST_LOG(log);
    lr_lors_size size;
    assert_int_equal(lr_lors_count(scanner, &progress, &size, &log.log), LR_CANCELLED);
    assert_null(lr_lors_create_watched(scanner, &progress, &log.log));
    assert_ints(asked, 2, log.status, LR_OK);
}

static void nothing_in_coincidence_is_an_error(void **state)
{
    struct test_log log = TEST_LOG(log);
    const lr_module modules[2] = {tilted_module(100, 60, 0, 0, 0, 2, 2), tilted_module(-100, 60, 0, 180, 0, 2, 2)};
    lr_scanner *scanner = keep(lr_scanner_create(&(lr_scanner_params){
        .name = "off", .modules = modules, .num_modules = 2, .coincidence = {.field_of_view_mm = 9}}));
    assert_null(lr_lors_create(scanner, &log.log));
    assert_error(&log, LR_BAD_INPUT, "off: no two crystals are in coincidence");
    lr_lors_destroy(NULL);
}

static void numbers_out_of_range(void **state)
{
    lr_scanner *scanner = small_ring(0, 0, -1);
    lr_lors *lors = keep(lr_lors_create(scanner, NULL));
    assert_ints(lr_lors_number(lors, -1, 100), -1, lr_lors_number(lors, 3, scanner->num_crystals), -1);
    assert_int_equal(lr_lors_number(lors, 0, 1), -1); /* same module */
    assert_all(!lr_lors_in_coincidence(lors, -1), !lr_lors_in_coincidence(lors, lors->count));
}

/* Arrays of LORs have the same contents as single LORs, for numbers in any order. */
static void spans_agree_with_single_lors(void **state)
{
    lr_scanner *scanner = keep(
        scanner_from("ring: {radius_mm: 60, modules: 10}\nmodule: {crystals: [5, 3], pitch_mm: [4, 4], face_mm: [3.5, "
                     "3.5], depth_mm: 10}\ncoincidence: {min_module_difference: 3}\ndetection_depth_mm: 2.5"));
    lr_lors *lors = keep(lr_lors_create(scanner, NULL));
    enum { COUNT = 50000 };
    int64_t *numbers = kept(COUNT, sizeof(*numbers)), *found = kept(COUNT, sizeof(*found));
    lr_lor *described = kept(COUNT, sizeof(*described));
    int32_t(*pairs)[2] = kept(COUNT, sizeof(*pairs));
    double(*ends)[2][3] = kept(COUNT, sizeof(*ends));
    double(*centres)[3] = kept(scanner->num_crystals, sizeof(*centres));
    uint64_t seed = test_seed();
    for (int k = 0; k < COUNT; k++) numbers[k] = (int64_t)(test_random(&seed) * (double)lors->count);

    const lr_lor_span spans[2] = {{.numbers = numbers, .count = COUNT}, {.first = 11, .count = lors->count - 20}};
    for (int n = 0; n < 2; n++) {
        const lr_lor_span span = {spans[n].numbers, spans[n].first, spans[n].count < COUNT ? spans[n].count : COUNT};
        assert_ok(lr_lor_span_describe(lors, &span, described, NULL));
        assert_ok(lr_lor_span_crystals(lors, &span, pairs, NULL), lr_lor_span_ends(lors, &span, ends, NULL));
        lr_lors_numbers(lors, (const int32_t(*)[2])pairs, span.count, found);
        for (int64_t k = 0; k < span.count; k++) {
            const int64_t lor = n == 0 ? numbers[k] : 11 + k;
            const lr_lor one = lr_lors_describe(lors, lor);
            int32_t two[2];
            lr_lors_crystals(lors, lor, two);
            assert_memory_equal(&one, &described[k], sizeof(one));
            assert_memory_equal(two, pairs[k], sizeof(two));
            assert_int_equal(found[k], lor);
            for (int end = 0; end < 2; end++) {
                double at[3];
                lr_scanner_hit_centre(scanner, two[end], at);
                for (int axis = 0; axis < 3; axis++) assert_true(fabs(at[axis] - ends[k][end][axis]) < 1e-12);
            }
        }
    }
    lr_scanner_crystal_centres(scanner, centres);
    for (int c = 0; c < scanner->num_crystals; c++) {
        double at[3];
        lr_scanner_crystal_centre(scanner, c, at);
        assert_memory_equal(at, centres[c], sizeof(at));
    }

    numbers[40000] = lors->count;
    numbers[300] = -1;
    assert_int_equal(lr_lor_span_crystals(lors, &spans[0], pairs, NULL), LR_USAGE);
    assert_says(lr_last_error(NULL), "number 300 of the list, -1,");
    pairs[0][0] = pairs[0][1] = 3; /* the same module */
    lr_lors_numbers(lors, (const int32_t(*)[2])pairs, 1, found);
    assert_int_equal(found[0], -1);
}

/* --- values per LOR --- */

/* Two opposed modules of 2 x 2 crystals: 16 LORs. */
static lr_lors *sixteen_lors(void)
{
    const lr_module modules[2] = {tilted_module(100, 0, 0, 0, 0, 2, 2), tilted_module(-100, 0, 0, 180, 0, 2, 2)};
    return lors_from(lr_scanner_create(&(lr_scanner_params){.name = "sixteen", .modules = modules, .num_modules = 2}));
}

static void events_are_counted(void **state)
{
    const int64_t events[] = {7, 3, -1, 7, 15, 0, 7, -5, 3}, index[] = {0, 3, 7, 15};
    lr_lor_data *data = keep(lr_lor_data_bin(events, 9, NULL));
    const float counts[] = {1, 2, 3, 1};
    assert_int_equal(data->count, 4);
    assert_memory_equal(data->index, index, sizeof(index));
    assert_memory_equal(data->values, counts, sizeof(counts));
}

/* The sum of counts is the number of events that belong to a LOR, and indices increase. */
static void many_events_are_counted(void **state)
{
    enum { EVENTS = 20000, LORS = 700 };
    uint64_t random = test_seed();
    int64_t *events = kept(EVENTS, sizeof(*events));
    int expected[LORS] = {0}, named = 0;
    for (int k = 0; k < EVENTS; k++) {
        const double draw = test_random(&random);
        events[k] = (int64_t)(draw * draw * (LORS + 50)) - 50;
        if (events[k] >= 0) {
            expected[events[k]]++;
            named++;
        }
    }
    lr_lor_data *data = keep(lr_lor_data_bin(events, EVENTS, NULL));
    double sum = 0;
    for (int64_t k = 0; k < data->count; k++) {
        assert_all(k == 0 || data->index[k] > data->index[k - 1], data->values[k] == (float)expected[data->index[k]]);
        sum += data->values[k];
    }
    assert_true(sum == named);
}

static void no_events_is_sparse_nothing(void **state)
{
    lr_lors *lors = sixteen_lors();
    lr_lor_data *data = keep(lr_lor_data_bin(NULL, 0, NULL));
    assert_int_equal(data->count, 0);
    assert_non_null(data->index);
    lr_lor_data *dense = keep(lr_lor_data_expand(data, lors, NULL));
    assert_int_equal(dense->count, 16);
    for (int k = 0; k < 16; k++) assert_true(dense->values[k] == 0.0f);
    lr_lor_data_destroy(NULL);
}

static void expanding_keeps_values(void **state)
{
    lr_lors *lors = sixteen_lors();
    const int64_t events[] = {15, 15, 2};
    lr_lor_data *dense = keep(lr_lor_data_expand(keep(lr_lor_data_bin(events, 3, NULL)), lors, NULL));
    lr_lor_data *copy = keep(lr_lor_data_expand(dense, lors, NULL));
    assert_null(dense->index);
    for (int k = 0; k < 16; k++) {
        const float expected = k == 15 ? 2.0f : k == 2 ? 1.0f : 0.0f;
        assert_true(dense->values[k] == expected && copy->values[k] == expected);
    }
}

static void data_of_another_scanner_is_refused(void **state)
{
    struct test_log log = TEST_LOG(log);
    lr_lors *lors = sixteen_lors();
    const int64_t events[] = {2, 16};
    assert_null(lr_lor_data_expand(keep(lr_lor_data_bin(events, 2, NULL)), lors, &log.log));
    assert_error(&log, LR_USAGE, "sixteen has 16 LORs");
    lr_lor_data *dense = keep(lr_lor_data_create(lors, NULL));
    dense->count = 15;
    assert_null(lr_lor_data_expand(dense, lors, &log.log));
}

test_main("unit: lors", CASE(rules_of_a_ring), CASE(field_of_view_of_tilted_modules), CASE(lines_along_the_axis),
          CASE(field_of_view_edge_counts), CASE(whole_scanners), CASE(equal_masks_are_shared),
          CASE(work_may_be_stopped), CASE(nothing_in_coincidence_is_an_error), CASE(numbers_out_of_range),
          CASE(spans_agree_with_single_lors), CASE(events_are_counted), CASE(many_events_are_counted),
          CASE(no_events_is_sparse_nothing), CASE(expanding_keeps_values), CASE(data_of_another_scanner_is_refused))
