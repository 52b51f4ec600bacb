/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Positions of events in histo-images, for the backend in argv[1]. */
#include "direct/cases.h"

#include "base/vec.h"

static double bin_mm; /* of the deposited events; 0 = none */

static const lr_view_set set = {.azimuths = 5, .tilts = 3, .acceptance_deg = 12};

static lr_grid wide_grid(void)
{
    return lr_grid_centred((const int[3]){41, 39, 21}, (const double[3]){3, 3, 2.5});
}

/* A smaller number of events on devices, since a device is opened for every event. */
static int fewer(int count)
{
    return test_backend_is("cpu") ? count : count / 10;
}

static lr_deposit *make_on(const char *name, const struct fixture *fixture, const lr_grid *grid, lr_deposit_rule rule,
                           bool delayeds)
{
    const lr_events_info info = {.has_tof = true, .tof_bin_mm = bin_mm};
    return keep(lr_deposit_create(&filled(lr_deposit_params, .scanner = fixture->scanner, .grid = grid, .set = set,
                                          .rule = rule, .delayeds = delayeds, .info = &info, .backend = name)));
}

static lr_deposit *make(const struct fixture *fixture, const lr_grid *grid, lr_deposit_rule rule, bool delayeds)
{
    return make_on(test_backend, fixture, grid, rule, delayeds);
}

/* Deposits one more event, and finishes the sums. */
static void deposit_event(lr_deposit *deposit, const lr_event *event)
{
    const lr_event_sink sink = lr_deposit_sink(deposit);
    assert_ok(sink.take(sink.user, event, 1), lr_deposit_finish(deposit));
}

/* Makes a random event, and returns the point at which it must be deposited. */
static lr_event random_event(const struct fixture *fixture, uint64_t *seed, double point_mm[3])
{
    const lr_scanner *scanner = fixture->scanner;
    lr_event event = {.weight = 1 + (float)(int)(3 * test_random(seed))};
    double ends[2][3];
    for (int k = 0; k < 2; k++) {
        event.crystals[k] = (int)(test_random(seed) * scanner->num_crystals);
        end_of(scanner, event.crystals[k], ends[k]);
    }
    event.tof_mm = (float)(80 * test_random(seed) - 40);
    const double d[3] = {ends[1][0] - ends[0][0], ends[1][1] - ends[0][1], ends[1][2] - ends[0][2]};
    const double length = vec_length(d);
    for (int k = 0; k < 3; k++)
        point_mm[k] = 0.5 * (ends[0][k] + ends[1][k]) + (length > 0 ? (double)event.tof_mm / length * d[k] : 0);
    return event;
}

/* Sum of all histo-images, the view that contains it, and the mean position. */
struct found {
    double weight, mean_mm[3];
    int views, view;
};

static struct found find(const lr_deposit *deposit)
{
    const lr_histo_images *images = lr_deposit_get_images(deposit);
    const int64_t count = lr_grid_num_voxels(&images->grid);
    struct found found = {0};
    for (int v = 0; v < images->num_views; v++) {
        double weight = 0;
        for (int64_t k = 0; k < count; k++) {
            const double value = (double)images->values[v * count + k];
            double at[3];
            if (value != 0) {
                lr_grid_voxel_centre(&images->grid, k, at);
                weight += value;
                vec_add_scaled(found.mean_mm, value, at, found.mean_mm);
            }
        }
        found.views += weight > 0;
        found.view = weight > 0 ? v : found.view;
        found.weight += weight;
    }
    for (int k = 0; k < 3; k++) found.mean_mm[k] /= found.weight;
    return found;
}

static void events_lie_where_time_of_flight_says(void **state)
{
    uint64_t seed = test_seed();
    const lr_grid grid = wide_grid();
    int64_t outcomes[3] = {0};
    struct fixture fixture = kept_fixture(FIXTURE_TWO_RINGS);
    const int before = num_kept();
    for (int n = 0; n < fewer(200); n++) {
        double point_mm[3];
        const lr_event event = random_event(&fixture, &seed, point_mm);
        for (int rule = 0; rule < 2; rule++) {
            lr_deposit *deposit = make(&fixture, &grid, (lr_deposit_rule)rule, false);
            deposit_event(deposit, &event);
            const lr_deposit_counts *counts = lr_deposit_get_counts(deposit);
            outcomes[0] += counts->deposited;
            outcomes[1] += counts->too_tilted;
            outcomes[2] += counts->outside_grid;
            if (counts->deposited == 1) {
                const struct found found = find(deposit);
                assert_int_equal(found.views, 1);
                assert_close(found.weight, (double)event.weight, 1e-6);
                for (int k = 0; k < 3; k++) {
                    const double off_mm = fabs(found.mean_mm[k] - point_mm[k]), edge_mm = fabs(grid.origin_mm[k]);
                    /* at the grid's border trilinear shares go to the outermost voxel centres */
                    const bool exact = rule == 1 && fabs(point_mm[k]) <= edge_mm;
                    assert_true(off_mm < (exact ? 1e-4 : 0.5 * grid.voxel_mm[k] + 1e-4));
                }
            } else if (counts->outside_grid == 1) {
                bool outside = false;
                for (int k = 0; k < 3; k++)
                    outside = outside || fabs(point_mm[k]) > 0.5 * grid.size[k] * grid.voxel_mm[k] - 1e-4;
                assert_true(outside);
            }
        }
        destroy_kept_since(before);
    }
    print_message("%d deposited, %d tilted too much, %d outside\n", (int)outcomes[0], (int)outcomes[1],
                  (int)outcomes[2]);
    assert_true(outcomes[0] > fewer(100) && outcomes[1] > 0);
    assert_int_equal(outcomes[0] + outcomes[1] + outcomes[2], fewer(400));
}

/* Mean and variance of the position along a line, of the content of one view. */
static void spread_along(const lr_deposit *deposit, int view, const double ends[2][3], double moments[2])
{
    const lr_histo_images *images = lr_deposit_get_images(deposit);
    const int64_t count = lr_grid_num_voxels(&images->grid);
    double along[3], sums[3] = {0};
    vec_sub(ends[1], ends[0], along);
    const double length = vec_length(along);
    for (int64_t k = 0; k < count; k++) {
        double off[3], value = (double)images->values[view * count + k];
        lr_grid_voxel_centre(&images->grid, k, off);
        vec_sub(off, ends[0], off);
        const double place = vec_dot(off, along) / length - 0.5 * length;
        for (int n = 0; n < 3; n++, value *= place) sums[n] += value;
    }
    moments[0] = sums[1] / sums[0];
    moments[1] = sums[2] / sums[0] - moments[0] * moments[0];
}

/* An event is spread evenly over its bin: the mean is the bin's middle, the variance is width^2 / 12, apart from the
 * effect of a voxel edge of 3 mm: 3^2 / 6 with trilinear shares. */
static void events_are_spread_over_their_bins(void **state)
{
    struct fixture fixture = kept_fixture(FIXTURE_TWO_RINGS);
    const lr_grid grid = wide_grid();
    uint64_t seed = test_seed();
    int whole = 0;
    bin_mm = 30;
    const int before = num_kept();
    for (int n = 0; n < fewer(400); n++) {
        double point_mm[3], ends[2][3], moments[2];
        const lr_event event = random_event(&fixture, &seed, point_mm);
        lr_deposit *deposit = make(&fixture, &grid, (lr_deposit_rule)(n % 2), false);
        deposit_event(deposit, &event);
        const lr_deposit_counts *counts = lr_deposit_get_counts(deposit);
        assert_int_equal(counts->deposited + counts->too_tilted + counts->outside_grid, 1);
        assert_true(counts->weight <= (double)event.weight * (1 + 1e-6));
        if (counts->weight > (double)event.weight * (1 - 1e-6)) { /* all of the event is in the grid */
            for (int k = 0; k < 2; k++) lr_scanner_hit_centre(fixture.scanner, event.crystals[k], ends[k]);
            spread_along(deposit, find(deposit).view, (const double(*)[3])ends, moments);
            assert_true(fabs(moments[0] - (double)event.tof_mm) < 0.8);
            assert_true(fabs(moments[1] - bin_mm * bin_mm / 12) < 5);
            whole++;
        }
        destroy_kept_since(before);
    }
    assert_true(whole > 3);
    bin_mm = 0;
}

static void views_are_those_of_the_line(void **state)
{
    uint64_t seed = test_seed();
    const lr_grid grid = wide_grid();
    struct fixture fixture = kept_fixture(FIXTURE_RING);
    const int before = num_kept();
    for (int n = 0; n < fewer(100); n++) {
        double point_mm[3];
        lr_event event = random_event(&fixture, &seed, point_mm);
        event.tof_mm = 0;
        lr_event turned = {.crystals = {event.crystals[1], event.crystals[0]}, .weight = 1};
        lr_deposit *deposit = make(&fixture, &grid, LR_DEPOSIT_NEAREST, false);
        const lr_event_sink sink = lr_deposit_sink(deposit);
        assert_ok(sink.take(sink.user, &event, 1), sink.take(sink.user, &turned, 1), lr_deposit_finish(deposit));
        if (lr_deposit_get_counts(deposit)->deposited == 2)
            assert_int_equal(find(deposit).views, 1);
        else
            assert_int_equal(lr_deposit_get_counts(deposit)->deposited, 0);
        destroy_kept_since(before);
    }
}

/* --- files --- */

static void count_views(const lr_deposit *deposit, double weights[15])
{
    const lr_histo_images *images = lr_deposit_get_images(deposit);
    const int64_t count = lr_grid_num_voxels(&images->grid);
    for (int v = 0; v < images->num_views; v++) {
        weights[v] = 0;
        for (int64_t k = 0; k < count; k++) weights[v] += (double)images->values[v * count + k];
    }
}

/* Simulated pairs, written as PETSIRD and CASToR and read again, are deposited in the same views and at the same
 * positions, apart from the bins of time of flight. */
static void check_file(const struct fixture *fixture, const lr_photon_params *photons, const char *path)
{
    const lr_grid grid = wide_grid();
    const lr_events_info info = {.has_tof = true, .tof_resolution_ps = 100, .duration_s = 60};
    struct test_log *log = kept_log();
    lr_deposit *direct = make(fixture, &grid, LR_DEPOSIT_TRILINEAR, false);
    const lr_event_sink sink = lr_deposit_sink(direct);
    assert_ok(lr_events_from_activity(photons, &sink, NULL));
    lr_events_writer *writer = non_null(lr_events_writer_create(
        &(lr_events_writer_params){.path = path, .lors = fixture->lors, .info = &info, .log = &log->log}));
    const lr_event_sink to_file = lr_events_writer_sink(writer);
    assert_ok(lr_events_from_activity(photons, &to_file, NULL), lr_events_writer_finish(writer));
    lr_deposit *read = make(fixture, &grid, LR_DEPOSIT_TRILINEAR, false);
    const lr_event_sink from_file = lr_deposit_sink(read);
    lr_events_info found;
    const lr_events_source source = {.path = path, .scanner = fixture->scanner, .log = &log->log};
    if (lr_events_read(&source, &from_file, &found) != LR_OK) fail_msg("%s", log->error);
    assert_true(found.has_tof);
    assert_ok(lr_deposit_finish(direct), lr_deposit_finish(read));
    lr_events_info_finish(&found);
    double a[15], b[15];
    count_views(direct, a);
    count_views(read, b);
    for (int v = 0; v < 15; v++) assert_true(fabs(a[v] - b[v]) <= 1e-3 * (a[v] + 1));
    assert_true(fabs(find(direct).mean_mm[0] - find(read).mean_mm[0]) < 0.1);
}

static void files_with_time_of_flight_give_the_same(void **state)
{
    struct fixture fixture = kept_fixture(FIXTURE_TWO_RINGS);
    lr_image *activity = kept_image(&fixture.grid, 1);
    const lr_photon_params photons = {
        .lors = fixture.lors, .activity = activity, .count = 3000, .tof_resolution_ps = 100, .seed = 5};
    check_file(&fixture, &photons, "deposit-events.petsird");
    check_file(&fixture, &photons, "deposit-events.Cdh");
    remove("deposit-events.petsird");
    remove("deposit-events.Cdh");
    remove("deposit-events.Cdf");
    remove("deposit-events.lut");
    remove("deposit-events.hscan");
}

static void prompts_and_delayeds_are_told_apart(void **state)
{
    uint64_t seed = 4;
    double point_mm[3];
    const lr_grid grid = wide_grid();
    struct fixture fixture = kept_fixture(FIXTURE_OPPOSED);
    lr_event event = random_event(&fixture, &seed, point_mm);
    const int before = num_kept();
    for (int delayeds = 0; delayeds < 2; delayeds++) {
        lr_deposit *deposit = make(&fixture, &grid, LR_DEPOSIT_NEAREST, delayeds != 0);
        event.is_delayed = delayeds == 0;
        deposit_event(deposit, &event);
        assert_int_equal(lr_deposit_get_counts(deposit)->other_kind, 1);
        destroy_kept_since(before);
    }
}

/* --- against the reference --- */

enum { NUM_EVENTS = 20000 };

static lr_event *random_events(const struct fixture *fixture)
{
    uint64_t seed = test_seed();
    double unused[3];
    lr_event *events = kept(NUM_EVENTS, sizeof(*events));
    for (int k = 0; k < NUM_EVENTS; k++) {
        events[k] = random_event(fixture, &seed, unused);
        events[k].is_delayed = k % 7 == 0;
        events[k].weight *= k % 3 == 0 ? 0.3f : 1;
    }
    return events;
}

/* Deposits the events in pieces of this size. */
static lr_deposit *deposit_all(const char *name, const struct fixture *fixture, lr_deposit_rule rule,
                               const lr_event *events, int piece)
{
    const lr_grid grid = wide_grid();
    lr_deposit *deposit = make_on(name, fixture, &grid, rule, false);
    const lr_event_sink sink = lr_deposit_sink(deposit);
    for (int at = 0; at < NUM_EVENTS; at += piece) {
        const int count = NUM_EVENTS - at < piece ? NUM_EVENTS - at : piece;
        assert_ok(sink.take(sink.user, events + at, count));
        if (at == 0) /* reading in between changes nothing */
            assert_ok(lr_deposit_finish(deposit));
    }
    assert_ok(lr_deposit_finish(deposit));
    assert_int_equal(lr_deposit_get_counts(deposit)->other_kind, (NUM_EVENTS + 6) / 7);
    return deposit;
}

static int64_t num_values(const lr_deposit *deposit)
{
    const lr_histo_images *images = lr_deposit_get_images(deposit);
    return images->num_views * lr_grid_num_voxels(&images->grid);
}

static double difference(const lr_deposit *a, const lr_deposit *b)
{
    return l2_apart(lr_deposit_get_images(b)->values, lr_deposit_get_images(a)->values, num_values(a));
}

static void check_counts(const lr_deposit *a, const lr_deposit *b)
{
    const lr_deposit_counts *left = lr_deposit_get_counts(a), *right = lr_deposit_get_counts(b);
    assert_ints(left->deposited, right->deposited, left->too_tilted, right->too_tilted);
    assert_int_equal(left->outside_grid, right->outside_grid);
    assert_close(left->weight, right->weight, 1e-7 * right->weight);
    assert_true(left->deposited > 2000 && left->too_tilted > 10);
}

/* The device sums in steps of 2^-37, the reference in float: the error is a few times half of 2^-24 of each sum. */
static void agrees_with_the_reference(void **state)
{
    struct fixture fixture = kept_fixture(FIXTURE_TWO_RINGS);
    lr_event *events = random_events(&fixture);
    const int before = num_kept();
    for (int turn = 0; turn < 4; turn++) {
        const int rule = turn % 2;
        bin_mm = turn < 2 ? 0 : 25.4;
        lr_deposit *reference = deposit_all("cpu", &fixture, (lr_deposit_rule)rule, events, 9000);
        lr_deposit *tested = deposit_all(test_backend, &fixture, (lr_deposit_rule)rule, events, 777);
        const double off = difference(reference, tested);
        print_message("rule %d: relative L2 difference %.2g\n", rule, off);
        check_counts(tested, reference);
        assert_true(off < 1e-6);
        destroy_kept_since(before);
    }
    bin_mm = 0;
}

/* A device gives the same bits for any order of the events and any division into batches. */
static void every_run_gives_the_same_bits(void **state)
{
    struct fixture fixture = kept_fixture(FIXTURE_TWO_RINGS);
    lr_event *events = random_events(&fixture);
    lr_deposit *first = deposit_all(test_backend, &fixture, LR_DEPOSIT_TRILINEAR, events, 5000);
    if (!test_backend_is("cpu")) {
        for (int k = 0; k < NUM_EVENTS / 2; k++) {
            const lr_event kept = events[k];
            events[k] = events[NUM_EVENTS - 1 - k];
            events[NUM_EVENTS - 1 - k] = kept;
        }
    }
    lr_deposit *second = deposit_all(test_backend, &fixture, LR_DEPOSIT_TRILINEAR, events, 1234);
    assert_memory_equal(lr_deposit_get_images(first)->values, lr_deposit_get_images(second)->values,
                        (size_t)num_values(first) * sizeof(float));
}

/* Sums that do not fit are an error, not a wrong number. */
static void sums_that_are_too_large_are_refused(void **state)
{
    const lr_grid grid = wide_grid();
    double unused[3];
    uint64_t seed = 4;
    struct fixture fixture = kept_fixture(FIXTURE_OPPOSED);
    lr_deposit *deposit = make(&fixture, &grid, LR_DEPOSIT_NEAREST, false);
    const lr_event_sink sink = lr_deposit_sink(deposit);
    lr_event event = random_event(&fixture, &seed, unused);
    do {
        event = random_event(&fixture, &seed, unused);
        deposit_event(deposit, &event);
    } while (lr_deposit_get_counts(deposit)->deposited == 0);
    event.weight = 4e7f;
    deposit_event(deposit, &event);
    assert_ok(sink.take(sink.user, &event, 1));
    assert_int_equal(lr_deposit_finish(deposit), test_backend_is("cpu") ? LR_OK : LR_FAILED);
}

/* More sums than the 128 MiB that llvmpipe allows for a buffer: views that are not in the first buffer get their sums,
 * too. */
static void all_buffers_of_sums_are_used(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){64, 64, 36}, (const double[3]){2, 2, 2});
    const lr_events_info info = {.has_tof = true};
    struct fixture fixture = kept_fixture(FIXTURE_TWO_RINGS);
    lr_event *events = random_events(&fixture);
    lr_deposit *deposits[2];
    for (int k = 0; k < 2; k++) {
        const lr_deposit_params params =
            filled(lr_deposit_params, .scanner = fixture.scanner, .grid = &grid, .set = {.acceptance_deg = 30},
                   .info = &info, .backend = k == 0 ? "cpu" : test_backend);
        deposits[k] = keep(lr_deposit_create(&params));
        const lr_event_sink sink = lr_deposit_sink(deposits[k]);
        assert_ok(sink.take(sink.user, events, NUM_EVENTS), lr_deposit_finish(deposits[k]));
    }
    assert_true(difference(deposits[0], deposits[1]) < 1e-6);
    check_counts(deposits[1], deposits[0]);
}

static void bad_events_are_refused(void **state)
{
    const lr_grid grid = wide_grid();
    const lr_events_info without = {0}, with = {.has_tof = true};
    struct test_log *log = kept_log();
    struct fixture fixture = kept_fixture(FIXTURE_OPPOSED);
    lr_deposit_params params = {.scanner = fixture.scanner, .grid = &grid, .info = &without, .log = &log->log};
    assert_none(lr_deposit_create(&params), LR_BAD_INPUT, log, "without time of flight");
    params.info = &with;
    params.set.tilts = -1;
    assert_null(lr_deposit_create(&params));
    params.set.tilts = 0;
    params.backend = "quantum";
    assert_none(lr_deposit_create(&params), LR_USAGE, log, "");
    params.backend = test_backend;
    lr_deposit *deposit = keep(lr_deposit_create(&params));
    const lr_event event = {.crystals = {0, fixture.scanner->num_crystals}, .weight = 1};
    const lr_event_sink sink = lr_deposit_sink(deposit);
    assert_int_equal(sink.take(sink.user, &event, 1), LR_BAD_INPUT);
    lr_deposit_destroy(NULL);
}

backend_main("cpu", CASES(events_lie_where_time_of_flight_says, events_are_spread_over_their_bins,
                          views_are_those_of_the_line, files_with_time_of_flight_give_the_same,
                          prompts_and_delayeds_are_told_apart, agrees_with_the_reference, every_run_gives_the_same_bits,
                          sums_that_are_too_large_are_refused, all_buffers_of_sums_are_used, bad_events_are_refused))
