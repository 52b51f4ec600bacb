/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Properties that only device backends of list mode have: vectors on the device, events that do not fit into its
 * memory, slices of any size, and values of any size. argv[1] names the backend. */
#define COUNT 2500
#include "listmode/usual.h"

#include "model/lors/selection.h"

static const lr_events_info timed = {.has_tof = true, .tof_resolution_ps = 400};

/* --- projections of the same numbers by two backends --- */

static void expect_alike(const lr_listmode_params *params, const double *y, const struct both *expected)
{
    const int before = num_kept();
    const struct both found = case_both(params, test_backend, y);
    expect_both(&found, expected, 1e-5, 1e-5);
    expect_adjoint(&found, 1e-6);
    destroy_kept_since(before);
}

static void expect_reference(const lr_listmode_params *params, const double *y)
{
    const struct both expected = case_both(params, "cpu", y);
    expect_alike(params, y, &expected);
}

/* --- slices that fit into a group's memory whole, in bands, or not at all --- */

static void test_sizes_of_slices(void **state)
{
    /* Slices across x, y and z: some fit in bands or one at a time, some do not fit, some have rows of one voxel. */
    static const int sizes[3][3] = {{3, 80, 70}, {127, 111, 2}, {1, 1, 300}};
    static const double edges[3][3] = {{30, 2.6, 2.8}, {1.6, 1.8, 30}, {40, 50, 0.8}};
    for (int k = 0; k < 3; k++) {
        grid = lr_grid_centred(sizes[k], edges[k]);
        lr_listmode_params params = params_of(CASE_LINE, NULL);
        expect_reference(&params, NULL);
        params.kernel = LR_LISTMODE_TUBE;
        params.tube = (lr_listmode_tube){.width_mm = 8, .fwhm_mm = 4, .as_paper = true};
        params.info = &timed;
        expect_reference(&params, NULL);
    }
}

/* With growing memory, events do not fit on the device as a whole, are arranged there and streamed from the host, or
   stay there. */
static void test_any_memory(void **state)
{
    lr_listmode_params params = params_of(CASE_LINE, &timed);
    for (int64_t bytes = 1 << 14; bytes <= 1 << 20; bytes *= 2) {
        params.max_memory_bytes = bytes;
        expect_reference(&params, NULL);
    }
}

/* --- values of any size --- */

static void test_sizes_of_values(void **state)
{
    static const double scales[4] = {1e-30, 1e-20, 1e20, 3e35};
    const lr_listmode_params params = params_of(CASE_TUBE, &timed);
    double *y = kept_doubles(COUNT);
    uint64_t seed = 32;
    for (int k = 0; k < 4; k++) {
        for (int64_t n = 0; n < COUNT; n++) y[n] = (double)(float)(scales[k] * (1.0 - 2.0 * test_random(&seed)));
        const struct both found = case_both(&params, test_backend, y), expected = case_both(&params, "cpu", y);
        assert_true(l2_apart(found.image, expected.image, found.num_voxels) < 1e-5);
    }
}

/* All events are on one line and have the largest value. The sum is the element times the number of events. */
static void test_sums_do_not_overflow(void **state)
{
    lr_event *same = kept(COUNT, sizeof(*same));
    double *y = kept_doubles(COUNT);
    for (int n = 0; n < COUNT; n++) same[n] = (lr_event){.crystals = {case_crystal(0, 10, 0), case_crystal(1, 0, 10)}};
    lr_listmode_params params = params_of(CASE_LINE, NULL);
    params.events = same;
    for (int round = 0; round < 2; round++) {
        for (int n = 0; n < COUNT; n++) y[n] = (round == 0 && n % 2 == 0 ? -1.0 : 1.0) * 0x1p100;
        const struct both found = case_both(&params, test_backend, y), expected = case_both(&params, "cpu", y);
        for (int64_t v = 0; v < found.num_voxels; v++) {
            assert_true(fabs(found.image[v] - expected.image[v]) <= 1e-5 * 0x1p100 * COUNT);
            assert_true(round > 0 || found.image[v] == 0);
        }
    }
}

/* An event that hardly sees the image has a ratio that is nearly infinite. */
static void test_few_large_values_leave_the_others(void **state)
{
    const lr_listmode_params params = params_of(CASE_TUBE, &timed);
    const struct both seen = case_both(&params, "cpu", NULL);
    double *y = kept_equal_doubles(COUNT, 1);
    int64_t least = -1;
    for (int64_t n = 0; n < COUNT; n++)
        if (seen.values[n] > 0 && (least < 0 || seen.values[n] < seen.values[least])) least = n;
    print_message("the least value is %.3g\n", seen.values[least]);
    assert_true(seen.values[least] < 1e-5);
    y[least] = 1.0 / seen.values[least];
    expect_reference(&params, y);
}

/* A few values are 2^9 times as large as the others. Voxels that only small values reach must be as accurate as
 * without the large values. */
static void test_small_values_are_kept(void **state)
{
    const lr_listmode_params params = params_of(CASE_TUBE, &timed);
    double *few = kept_doubles(COUNT), *all = kept_doubles(COUNT), most = 0;
    uint64_t seed = 36;
    for (int64_t n = 0; n < COUNT; n++) {
        const double value = (double)(float)(1.0 + test_random(&seed));
        few[n] = n % 16 == 0 ? value : 0;
        all[n] = n % 16 == 0 ? value : 0x1p-9 * value;
    }
    const struct both large = case_both(&params, "cpu", few), expected = case_both(&params, "cpu", all);
    const struct both found = case_both(&params, test_backend, all);
    int64_t seen = 0;
    for (int64_t v = 0; v < found.num_voxels; v++) {
        most = large.image[v] == 0 ? fmax(most, expected.image[v]) : most;
        seen += large.image[v] == 0 && expected.image[v] > 0;
    }
    assert_true(seen > 100);
    for (int64_t v = 0; v < found.num_voxels; v++)
        assert_true(large.image[v] != 0 || fabs(found.image[v] - expected.image[v]) <= 1e-5 * most);
}

/* Crystals with odd numbers have no time of flight, so that most events have none. */
static void test_lines_with_and_without_times(void **state)
{
    /* Ratios between a few large values and the rest: with the first ratio sums are integers, with the second they
     * are floats. */
    static const double large[2] = {0x1p6, 0x1p12};
    const int crystals = lors.scanner->num_crystals;
    unsigned char *kind_of = kept(crystals, 1);
    double *y = kept_doubles(COUNT);
    for (int c = 1; c < crystals; c += 2) kind_of[c] = (unsigned char)LR_EVENTS_NO_KIND;
    float edges[6] = {-150, -90, -30, 30, 90, 150};
    lr_tof_bins tof = {.num_bins = 5, .resolution_ps = 400};
    const lr_events_info info = {.has_tof = true,
                                 .kinds = {.count = 1, .num_crystals = crystals, .kind_of = kind_of, .tof = &tof}};
    for (int k = 0; k < 8; k++) {
        uint64_t seed = 37;
        tof.edges_mm = k < 4 ? NULL : edges;
        for (int n = 0; n < COUNT; n++) {
            const double factor = n % 50 == 0 ? large[k / 2 % 2] : n % 50 < 9 ? 0x1p-9 : 1.0;
            y[n] = (double)(float)(factor * (1.0 + test_random(&seed)));
        }
        lr_listmode_params params = params_of(k % 2 == 0 ? CASE_TUBE : CASE_LINE, &info);
        params.num_ranges = 3;
        expect_reference(&params, y);
    }
}

/* --- events that do not fit --- */

static void test_streamed_events(void **state)
{
    for (int model = 0; model < 2; model++) {
        lr_listmode_params params = params_of(model, &timed);
        const struct both whole = case_both(&params, test_backend, NULL);
        params.max_memory_bytes = 1;
        const struct both streamed = case_both(&params, test_backend, NULL);
        if (!test_backend_is("cuda")) assert_memory_equal(whole.values, streamed.values, COUNT * sizeof(double));
        if (!is_on_device()) /* on devices, groups add up in another order */
            assert_memory_equal(whole.image, streamed.image, (size_t)whole.num_voxels * sizeof(double));
        expect_both(&streamed, &whole, 1e-6, 3e-6);
    }
}

/* --- the paper's steps --- */

/* A part of the events: the variant must give the results of the fastest variant. */
static void expect_part(const lr_listmode_params *params, const lr_selection *part)
{
    lr_listmode_params fastest = *params;
    fastest.variant = LR_LISTMODE_FASTEST;
    const int before = num_kept();
    const struct both expected = case_both_of(case_open(&fastest, test_backend), part);
    const struct both found = case_both_of(case_open(params, test_backend), part);
    expect_both(&found, &expected, 3e-6, 3e-6);
    destroy_kept_since(before);
}

/* Tests the variants on a device, or on the tests' stand-in for one, which has so little shared memory that a slice
 * is divided into several tiles. */
static void test_variants(void **state)
{
    static const int32_t ranges[2] = {0, 2};
    int64_t numbers[COUNT / 3];
    for (int k = 0; k < COUNT / 3; k++) numbers[k] = 3 * k + 1;
    for (int k = 0; k < 2 * NUM_CASES && test_backend_is("cuda"); k++) {
        lr_listmode_params params = params_of(k / 2, k % 2 ? &timed : NULL);
        const struct both expected = case_both(&params, "cpu", NULL);
        for (int variant = LR_LISTMODE_FASTEST; variant <= LR_LISTMODE_FASTMATH; variant++) {
            params.num_ranges = 0;
            params.variant = (lr_listmode_variant)variant;
            expect_alike(&params, NULL, &expected);
            if (variant == LR_LISTMODE_FASTEST || params.kernel != LR_LISTMODE_TUBE) continue;
            params.num_ranges = 3;
            expect_part(&params, &(lr_selection){.pairs = ranges, .num_pairs = 2});
            expect_part(&params, &(lr_selection){.lors = numbers, .num_lors = COUNT / 3});
        }
    }
}

static void test_variants_need_room(void **state)
{
    lr_listmode_params params = params_of(CASE_TUBE, NULL);
    params.variant = LR_LISTMODE_SORTED;
    params.max_memory_bytes = 1;
    if (test_backend_is("cuda")) {
        struct case_backend *open = case_models(&params, test_backend);
        struct lr_backend backend;
        assert_fails(case_create(test_backend, &open->params, &backend), LR_USAGE, &open->log,
                     "2500 events do not fit");
    }
}

/* --- events are arranged on a device as on the host --- */

/* The place of arranged events: on the device, on the host after arranging on the device, or never on the device
 * because its memory has no room. */
enum arranged { STAY, GO_BACK, HAVE_NO_ROOM };

static void end_events(void *object)
{
    lr_listmode_events_finish(object);
    free(object);
}

/* Checks the arrangement. Some events have equal centres and stay in the caller's order, and one range is empty. */
static void check_arranged(const lr_events_info *info, enum arranged where)
{
    static const int64_t ranges[4] = {0, 700, 700, COUNT};
    lr_listmode_params params = params_of(CASE_TUBE, info);
    lr_event *twice = kept(COUNT, sizeof(*twice));
    for (int k = 0; k < COUNT; k++) twice[k] = events[k / 2];
    params.log = &test_log.log;
    params.events = twice;
    params.ranges = ranges;
    params.num_ranges = 3;
    struct lr_listmode_events *found = keep_object(calloc(1, sizeof(*found)), end_events);
    struct lr_listmode_events *expected = keep_object(calloc(1, sizeof(*expected)), end_events);
    assert_ok(events_init(expected, &params), lr_listmode_events_open(found, &params, NULL));
    struct lr_listmode_model model;
    assert_ok(lr_listmode_model_init(&model, &params));
    const struct lr_listmode_backend_params backend_params =
        filled(struct lr_listmode_backend_params, .model = &model, .events = found, .place = case_place(test_backend),
               .variant = where == GO_BACK ? LR_LISTMODE_SORTED : LR_LISTMODE_FASTEST,
               .max_memory_bytes = where == HAVE_NO_ROOM ? 1 : 0, .log = &test_log.log);
    assert_ok(lr_plugin_cuda(&test_log.log)->arrange(found, &backend_params));
    assert_ints(found->held != NULL, where == STAY, found->is_arranged, where == GO_BACK);
    if (found->held != NULL) {
        assert_ok(lr_listmode_events_make_arrays(found, &test_log.log));
        assert_ok(found->held->fetch(found->held, found, &test_log.log));
    }
    assert_ok(lr_listmode_events_arrange(found, &params));
    expect_same_events(found, expected);
    lr_listmode_model_finish(&model);
}

static void test_arranged(void **state)
{
    if (test_backend_is("cuda")) {
        check_arranged(&timed, STAY);
        check_arranged(NULL, STAY);
        check_arranged(&timed, GO_BACK);
        check_arranged(&timed, HAVE_NO_ROOM);
    }
}

/* --- vectors where the backend computes --- */

/* A vector at a place that is a part of a longer one and does not begin at its start. */
static lr_vector vector_at(lr_place *place, const double *values, int64_t count)
{
    const lr_vector whole = kept_vector(place, count + 5, LR_FLOAT32);
    lr_vector part = lr_vector_part(&whole, 5, count);
    assert_ok(lr_vector_copy(vector_of(values, count), &part));
    return part;
}

static void expect_same(const lr_vector *at_place, const double *expected)
{
    double *values = kept_doubles(at_place->count);
    lr_vector host = lr_vector_of_doubles(values, at_place->count);
    assert_ok(lr_vector_copy(at_place, &host));
    assert_memory_equal(values, expected, (size_t)host.count * sizeof(double));
}

static void test_vectors_stay(void **state)
{
    const lr_selection part = {.pairs = (const int32_t[2]){0, 2}, .num_pairs = 2};
    lr_listmode_params params = params_of(CASE_TUBE, &timed);
    params.num_ranges = 3;
    const struct case_backend *open = case_open(&params, test_backend);
    const struct lr_backend *backend = &open->backend;
    assert_non_null(backend->place);
    const struct both both = case_both_of(open, &part);
    lr_vector x = vector_at(backend->place, both.x, both.num_voxels);
    lr_vector y = vector_at(backend->place, both.y, both.count);
    const lr_traffic before = lr_place_get_info(backend->place).traffic;
    assert_ok(backend->fns->project(backend->self, false, &part, &y, &x));
    const lr_traffic after = lr_place_get_info(backend->place).traffic;
    assert_true(after.to_device == before.to_device && after.to_host == before.to_host);
    expect_same(&x, both.image);
    assert_ok(lr_vector_copy(vector_of(both.x, both.num_voxels), &x),
              backend->fns->project(backend->self, true, &part, &x, &y));
    expect_same(&y, both.values);
}

case_main("compute", set_up,
          CASES(test_sizes_of_slices, test_any_memory, test_sizes_of_values, test_sums_do_not_overflow,
                test_few_large_values_leave_the_others, test_small_values_are_kept, test_lines_with_and_without_times,
                test_streamed_events, test_arranged, test_variants, test_variants_need_room, test_vectors_stay))
