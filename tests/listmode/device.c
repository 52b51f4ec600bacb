/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Properties that only device backends of list mode have: vectors at the device, events that do not fit into its
 * memory, slices of any size, and values of any size. argv[1] names the backend. */
#include "listmode/cases.h"

#include "model/lors/selection.h"

enum { COUNT = 2500 };

static const char *backend;
static lr_scanner *scanner;
static lr_lors lors; /* of the scanner, which is all that list mode asks of them */
static lr_event *events;
static const lr_events_info timed = {.has_tof = true, .tof_resolution_ps = 400};

static int setup(void **state)
{
    uint64_t seed = test_seed();
    scanner = case_scanner();
    lors = (lr_lors){.scanner = scanner};
    events = case_events(COUNT, &seed);
    return 0;
}

static int teardown(void **state)
{
    free(events);
    lr_scanner_destroy(scanner);
    return 0;
}

static lr_listmode_params params_on(const lr_grid *grid, enum case_model model, const lr_events_info *info)
{
    lr_listmode_params params = {
        .lors = &lors, .grid = grid, .events = events, .count = COUNT, .info = info, .threads = 2};
    case_kernel(&params, model);
    return params;
}

/* --- projections of the same numbers by two backends --- */

struct both {
    int64_t num_voxels, count;
    double *x, *y, *values, *image;
};

static struct both both_of(const lr_listmode_params *params, const char *name, const double *y)
{
    struct case_backend open;
    struct both both = {.num_voxels = lr_grid_num_voxels(params->grid), .count = params->count};
    uint64_t seed = 31;
    case_open(&open, params, name);
    both.x = case_random(both.num_voxels, &seed);
    both.y = case_random(both.count, &seed);
    for (int64_t k = 0; y != NULL && k < both.count; k++) both.y[k] = y[k];
    both.values = case_ones(both.count); /* stale */
    both.image = case_ones(both.num_voxels);
    case_forward(&open, NULL, both.x, both.values);
    case_back(&open, NULL, both.y, both.image);
    case_close(&open);
    return both;
}

static void free_both(struct both *both)
{
    free(both->x);
    free(both->y);
    free(both->values);
    free(both->image);
}

static void expect_alike(const lr_listmode_params *params, const double *y, const struct both *expected)
{
    struct both found = both_of(params, backend, y);
    assert_true(case_difference(found.values, expected->values, params->count) < 1e-5);
    assert_true(case_difference(found.image, expected->image, found.num_voxels) < 1e-5);
    assert_close(case_dot(found.values, found.y, found.count), case_dot(found.x, found.image, found.num_voxels), 1e-6);
    free_both(&found);
}

static void expect_reference(const lr_listmode_params *params, const double *y)
{
    struct both expected = both_of(params, "cpu", y);
    expect_alike(params, y, &expected);
    free_both(&expected);
}

/* --- slices that groups hold whole, in bands, and not at all --- */

static void test_sizes_of_slices(void **state)
{
    /* Across x, y and z: bands, and one slice at a time; slices that none holds; rows of one voxel. */
    static const int sizes[3][3] = {{3, 80, 70}, {127, 111, 2}, {1, 1, 300}};
    static const double edges[3][3] = {{30, 2.6, 2.8}, {1.6, 1.8, 30}, {40, 50, 0.8}};
    for (int k = 0; k < 3; k++) {
        const lr_grid grid = lr_grid_centred(sizes[k], edges[k]);
        lr_listmode_params params = params_on(&grid, CASE_LINE, NULL);
        expect_reference(&params, NULL);
        params.kernel = LR_LISTMODE_TUBE;
        params.tube = (lr_listmode_tube){.width_mm = 8, .fwhm_mm = 4, .as_paper = true};
        params.info = &timed;
        expect_reference(&params, NULL);
    }
}

/* Events stay on the device, or go back to be streamed, or never get there as a whole. */
static void test_any_memory(void **state)
{
    const lr_grid grid = case_grid();
    lr_listmode_params params = params_on(&grid, CASE_LINE, &timed);
    for (int64_t bytes = 1 << 14; bytes <= 1 << 20; bytes *= 2) {
        params.max_memory_bytes = bytes;
        expect_reference(&params, NULL);
    }
}

/* --- values of any size --- */

static void test_sizes_of_values(void **state)
{
    const lr_grid grid = case_grid();
    const lr_listmode_params params = params_on(&grid, CASE_TUBE, &timed);
    double *y = case_doubles(COUNT);
    static const double scales[4] = {1e-30, 1e-20, 1e20, 3e35};
    uint64_t seed = 32;
    for (int k = 0; k < 4; k++) {
        for (int64_t n = 0; n < COUNT; n++) y[n] = (double)(float)(scales[k] * (1.0 - 2.0 * test_random(&seed)));
        struct both found = both_of(&params, backend, y), expected = both_of(&params, "cpu", y);
        assert_true(case_difference(found.image, expected.image, found.num_voxels) < 1e-5);
        free_both(&found);
        free_both(&expected);
    }
    free(y);
}

/* All events are on one line and have the largest value. The sum equals the element times the number of events. */
static void test_sums_do_not_overflow(void **state)
{
    const lr_grid grid = case_grid();
    lr_event *same = calloc(COUNT, sizeof(*same));
    double *y = case_doubles(COUNT);
    for (int n = 0; n < COUNT; n++) {
        same[n] = (lr_event){.crystals = {case_crystal(0, 10, 0), case_crystal(1, 0, 10)}};
        y[n] = (n % 2 == 0 ? -1.0 : 1.0) * 0x1p100;
    }
    lr_listmode_params params = params_on(&grid, CASE_LINE, NULL);
    params.events = same;
    for (int round = 0; round < 2; round++) {
        struct both found = both_of(&params, backend, y), expected = both_of(&params, "cpu", y);
        for (int64_t v = 0; v < found.num_voxels; v++) {
            assert_true(fabs(found.image[v] - expected.image[v]) <= 1e-5 * 0x1p100 * COUNT);
            assert_true(round > 0 || found.image[v] == 0);
        }
        free_both(&found);
        free_both(&expected);
        for (int n = 0; n < COUNT; n++) y[n] = 0x1p100;
    }
    free(same);
    free(y);
}

/* Events that see next to nothing have ratios that are next to infinite. */
static void test_few_large_values_leave_the_others(void **state)
{
    const lr_grid grid = case_grid();
    const lr_listmode_params params = params_on(&grid, CASE_TUBE, &timed);
    struct both seen = both_of(&params, "cpu", NULL);
    double *y = case_ones(COUNT);
    int64_t least = -1;
    for (int64_t n = 0; n < COUNT; n++)
        if (seen.values[n] > 0 && (least < 0 || seen.values[n] < seen.values[least])) least = n;
    print_message("the least value is %.3g\n", seen.values[least]);
    assert_true(seen.values[least] < 1e-5);
    y[least] = 1.0 / seen.values[least];
    expect_reference(&params, y);
    free(y);
    free_both(&seen);
}

/* A few values are 2^9 times as large as the others: voxels that only the others see have their image to the
 * digits that it has without the large ones. */
static void test_small_values_are_kept(void **state)
{
    const lr_grid grid = case_grid();
    const lr_listmode_params params = params_on(&grid, CASE_TUBE, &timed);
    double *y[2] = {case_doubles(COUNT), case_doubles(COUNT)}, most = 0;
    uint64_t seed = 36;
    for (int64_t n = 0; n < COUNT; n++) {
        const double value = (double)(float)(1.0 + test_random(&seed));
        y[0][n] = n % 16 == 0 ? value : 0;
        y[1][n] = n % 16 == 0 ? value : 0x1p-9 * value;
    }
    struct both large = both_of(&params, "cpu", y[0]), expected = both_of(&params, "cpu", y[1]);
    struct both found = both_of(&params, backend, y[1]);
    int64_t seen = 0;
    for (int64_t v = 0; v < found.num_voxels; v++) {
        most = large.image[v] == 0 ? fmax(most, expected.image[v]) : most;
        seen += large.image[v] == 0 && expected.image[v] > 0;
    }
    assert_true(seen > 100);
    for (int64_t v = 0; v < found.num_voxels; v++)
        assert_true(large.image[v] != 0 || fabs(found.image[v] - expected.image[v]) <= 1e-5 * most);
    for (int k = 0; k < 2; k++) free(y[k]);
    free_both(&large);
    free_both(&expected);
    free_both(&found);
}

/* Crystals of odd numbers have no time of flight, so that most events have none. */
static void test_lines_with_and_without_times(void **state)
{
    const lr_grid grid = case_grid();
    const int crystals = scanner->num_crystals;
    unsigned char *kind_of = malloc((size_t)crystals);
    for (int c = 0; c < crystals; c++) kind_of[c] = c % 2 == 0 ? 0 : (unsigned char)LR_EVENTS_NO_KIND;
    float edges[6] = {-150, -90, -30, 30, 90, 150};
    lr_tof_bins tof = {.num_bins = 5, .resolution_ps = 400};
    const lr_events_info info = {.has_tof = true,
                                 .kinds = {.count = 1, .num_crystals = crystals, .kind_of = kind_of, .tof = &tof}};
    /* Factors by which few values are larger and smaller than the rest: with the first, sums are integers, with the
     * second floats. */
    static const double factors[2] = {0x1p6, 0x1p12};
    double *y = case_doubles(COUNT);
    for (int k = 0; k < 8; k++) {
        uint64_t seed = 37;
        tof.edges_mm = k < 4 ? NULL : edges;
        for (int n = 0; n < COUNT; n++) {
            const double factor = n % 50 == 0 ? factors[k / 2 % 2] : n % 50 < 9 ? 0x1p-9 : 1.0;
            y[n] = (double)(float)(factor * (1.0 + test_random(&seed)));
        }
        lr_listmode_params params = params_on(&grid, k % 2 == 0 ? CASE_TUBE : CASE_LINE, &info);
        params.num_ranges = 3;
        expect_reference(&params, y);
    }
    free(y);
    free(kind_of);
}

/* --- events that do not fit --- */

static void test_streamed_events(void **state)
{
    const lr_grid grid = case_grid();
    for (int model = 0; model < 2; model++) {
        lr_listmode_params params = params_on(&grid, (enum case_model)model, &timed);
        struct both whole = both_of(&params, backend, NULL);
        params.max_memory_bytes = 1;
        struct both streamed = both_of(&params, backend, NULL);
        if (strcmp(backend, "cuda") != 0) assert_memory_equal(whole.values, streamed.values, COUNT * sizeof(double));
        if (strcmp(backend, "cuda") != 0 && strcmp(backend, "compute") != 0) {
            assert_memory_equal(whole.image, streamed.image, (size_t)whole.num_voxels * sizeof(double));
        } /* else other groups add up */
        assert_true(case_difference(streamed.values, whole.values, COUNT) < 1e-6);
        assert_true(case_difference(streamed.image, whole.image, whole.num_voxels) < 3e-6);
        free_both(&whole);
        free_both(&streamed);
    }
}

/* --- the paper's steps --- */

/* A part of the events by a variant: what the fastest one has of it. */
static void expect_part(const lr_listmode_params *params, const lr_selection *part)
{
    lr_listmode_params fastest = *params;
    fastest.variant = LR_LISTMODE_FASTEST;
    const lr_listmode_params *const ways[2] = {&fastest, params};
    const int64_t num_voxels = lr_grid_num_voxels(params->grid);
    double *values[2], *images[2], *x = NULL, *y = NULL;
    int64_t count = 0;
    for (int k = 0; k < 2; k++) {
        struct case_backend open;
        uint64_t seed = 35;
        case_open(&open, ways[k], backend);
        count = lr_selection_count(&open.events.layout, part);
        x = case_random(num_voxels, &seed);
        y = case_random(count, &seed);
        values[k] = case_ones(count);
        images[k] = case_ones(num_voxels);
        case_forward(&open, part, x, values[k]);
        case_back(&open, part, y, images[k]);
        case_close(&open);
        free(x);
        free(y);
    }
    assert_true(case_difference(values[1], values[0], count) < 3e-6);
    assert_true(case_difference(images[1], images[0], num_voxels) < 3e-6);
    for (int k = 0; k < 2; k++) {
        free(values[k]);
        free(images[k]);
    }
}

static void expect_parts(lr_listmode_params params)
{
    static const int32_t ranges[2] = {0, 2};
    int64_t numbers[COUNT / 3];
    for (int k = 0; k < COUNT / 3; k++) numbers[k] = 3 * k + 1;
    params.num_ranges = 3;
    expect_part(&params, &(lr_selection){.pairs = ranges, .num_pairs = 2});
    expect_part(&params, &(lr_selection){.lors = numbers, .num_lors = COUNT / 3});
}

static void expect_variants(lr_listmode_params params)
{
    struct both expected = both_of(&params, "cpu", NULL);
    for (int variant = LR_LISTMODE_FASTEST; variant <= LR_LISTMODE_FASTMATH; variant++) {
        params.variant = (lr_listmode_variant)variant;
        expect_alike(&params, NULL, &expected);
        if (variant != LR_LISTMODE_FASTEST && params.kernel == LR_LISTMODE_TUBE) expect_parts(params);
    }
    free_both(&expected);
}

/* Variants on a device, and on the tests' stand-in for a device, which has so little shared memory that slices are
 * in several tiles. */
static void test_variants(void **state)
{
    const lr_grid grid = case_grid();
    for (int model = 0; model < NUM_CASES && strcmp(backend, "cuda") == 0; model++) {
        expect_variants(params_on(&grid, (enum case_model)model, model % 2 == 0 ? NULL : &timed));
        expect_variants(params_on(&grid, (enum case_model)model, model % 2 == 0 ? &timed : NULL));
    }
}

static void test_variants_need_room(void **state)
{
    const lr_grid grid = case_grid();
    lr_listmode_params params = params_on(&grid, CASE_TUBE, NULL);
    struct test_log log;
    params.variant = LR_LISTMODE_SORTED;
    params.max_memory_bytes = 1;
    params.backend = backend;
    if (strcmp(backend, "cuda") == 0) {
        struct case_backend open;
        case_models(&open, &params, &log);
        assert_int_equal(case_create(backend, &open.params, &open.backend), LR_USAGE);
        assert_non_null(strstr(log.error, "2500 events do not fit"));
        case_close_models(&open);
    }
}

/* --- events are arranged on a device as on the host --- */

static void expect_arrays(const struct lr_listmode_events *found, const struct lr_listmode_events *expected)
{
    const size_t bytes = (size_t)expected->layout.count * sizeof(int32_t);
    assert_memory_equal(found->groups, expected->groups,
                        (size_t)expected->layout.num_pairs * sizeof(*expected->groups));
    assert_memory_equal(found->crystals[0], expected->crystals[0], bytes);
    assert_memory_equal(found->crystals[1], expected->crystals[1], bytes);
    assert_memory_equal(found->tof_mm, expected->tof_mm, bytes);
    assert_memory_equal(found->number, expected->number, bytes);
}

/* Place of arranged events: they stay on the device, go back to the host, or are not on the device because its
 * memory has no room. */
enum arranged { STAY, GO_BACK, HAVE_NO_ROOM };

/* Checks the arrangement. Some events have equal centres and stay in the caller's order, and one range is empty. */
static void check_arranged(const lr_events_info *info, enum arranged where)
{
    static const int64_t ranges[4] = {0, 700, 700, COUNT};
    const lr_grid grid = case_grid();
    struct test_log log;
    lr_listmode_params params = params_on(&grid, CASE_TUBE, info);
    lr_event *twice = calloc(COUNT, sizeof(*twice));
    struct lr_listmode_events found, expected;
    assert_non_null(twice);
    for (int k = 0; k < COUNT; k++) twice[k] = events[k / 2];
    test_log_init(&log);
    params.log = &log.log;
    params.events = twice;
    params.ranges = ranges;
    params.num_ranges = 3;
    assert_int_equal(lr_listmode_events_init(&expected, &params), LR_OK);
    assert_int_equal(lr_listmode_events_open(&found, &params, NULL), LR_OK);
    struct lr_listmode_model model;
    assert_int_equal(lr_listmode_model_init(&model, &params), LR_OK);
    const struct lr_listmode_backend_params backend_params = {.model = &model,
                                                              .events = &found,
                                                              .place = case_place(backend),
                                                              .variant = where == GO_BACK ? LR_LISTMODE_SORTED
                                                                                          : LR_LISTMODE_FASTEST,
                                                              .max_memory_bytes = where == HAVE_NO_ROOM ? 1 : 0,
                                                              .log = &log.log};
    assert_int_equal(lr_plugin_cuda(&log.log)->arrange(&found, &backend_params), LR_OK);
    assert_int_equal(found.held != NULL, where == STAY);
    assert_int_equal(found.is_arranged, where == GO_BACK);
    if (found.held != NULL) {
        assert_int_equal(lr_listmode_events_make_arrays(&found, &log.log), LR_OK);
        assert_int_equal(found.held->fetch(found.held, &found, &log.log), LR_OK);
    }
    assert_int_equal(lr_listmode_events_arrange(&found, &params), LR_OK);
    expect_arrays(&found, &expected);
    lr_listmode_model_finish(&model);
    lr_listmode_events_finish(&found);
    lr_listmode_events_finish(&expected);
    free(twice);
}

static void test_arranged(void **state)
{
    if (strcmp(backend, "cuda") == 0) {
        check_arranged(&timed, STAY);
        check_arranged(NULL, STAY);
        check_arranged(&timed, GO_BACK);
        check_arranged(&timed, HAVE_NO_ROOM);
    }
}

/* --- vectors where the backend computes --- */

static lr_vector vector_at(lr_place *place, const lr_vector *host)
{
    lr_vector vector;
    assert_int_equal(lr_vector_create(&(lr_vector_params){.place = place, .count = host->count + 5}, &vector), LR_OK);
    lr_vector part = lr_vector_part(&vector, 5, host->count);
    assert_int_equal(lr_vector_copy(host, &part), LR_OK);
    return vector;
}

static lr_vector host_of(const double *values, int64_t count)
{
    lr_vector vector;
    assert_int_equal(lr_vector_create(&(lr_vector_params){.count = count}, &vector), LR_OK);
    case_put(&vector, values);
    return vector;
}

static void expect_same(const lr_vector *at_place, const double *expected)
{
    float *values = calloc((size_t)at_place->count, sizeof(*values));
    lr_vector host = lr_vector_of_floats(values, at_place->count);
    assert_int_equal(lr_vector_copy(at_place, &host), LR_OK);
    for (int64_t k = 0; k < host.count; k++) assert_true((double)values[k] == expected[k]);
    free(values);
}

/* Parts of vectors, which begin anywhere, of a part of the events. */
static void test_vectors_stay(void **state)
{
    enum { RANGES = 3 };
    static const int32_t ranges[2] = {0, 2};
    const lr_selection part = {.pairs = ranges, .num_pairs = 2};
    const lr_grid grid = case_grid();
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    lr_listmode_params params = params_on(&grid, CASE_TUBE, &timed);
    params.num_ranges = RANGES;
    struct case_backend open;
    case_open(&open, &params, backend);
    lr_place *place = open.backend.place;
    assert_non_null(place);
    const int64_t count = lr_selection_count(&open.events.layout, &part);
    uint64_t seed = 33;
    double *x = case_random(num_voxels, &seed), *y = case_random(count, &seed);
    double *values = case_ones(count), *image = case_ones(num_voxels);
    case_forward(&open, &part, x, values);
    case_back(&open, &part, y, image);
    lr_vector host_x = host_of(x, num_voxels), host_y = host_of(y, count);
    lr_vector all_x = vector_at(place, &host_x), all_y = vector_at(place, &host_y);
    lr_vector at_x = lr_vector_part(&all_x, 5, num_voxels);
    lr_vector at_y = lr_vector_part(&all_y, 5, count);
    const lr_traffic before = lr_place_get_info(place).traffic;
    assert_int_equal(open.backend.fns->back(open.backend.self, &part, &at_y, &at_x), LR_OK);
    const lr_traffic after = lr_place_get_info(place).traffic;
    assert_true(after.to_device == before.to_device && after.to_host == before.to_host);
    expect_same(&at_x, image);
    assert_int_equal(lr_vector_copy(&host_x, &at_x), LR_OK);
    assert_int_equal(open.backend.fns->forward(open.backend.self, &part, &at_x, &at_y), LR_OK);
    expect_same(&at_y, values);
    lr_vector_destroy(&all_x);
    lr_vector_destroy(&all_y);
    lr_vector_destroy(&host_x);
    lr_vector_destroy(&host_y);
    case_close(&open);
    free(x);
    free(y);
    free(values);
    free(image);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_of_slices),
        cmocka_unit_test(test_any_memory),
        cmocka_unit_test(test_sizes_of_values),
        cmocka_unit_test(test_sums_do_not_overflow),
        cmocka_unit_test(test_few_large_values_leave_the_others),
        cmocka_unit_test(test_small_values_are_kept),
        cmocka_unit_test(test_lines_with_and_without_times),
        cmocka_unit_test(test_streamed_events),
        cmocka_unit_test(test_arranged),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_variants_need_room),
        cmocka_unit_test(test_vectors_stay),
    };
    backend = argc > 1 ? argv[1] : "compute";
    if (argc > 2) cmocka_set_test_filter(argv[2]);
    if (case_lacks_device(backend)) return 77;
    return cmocka_run_group_tests(tests, setup, teardown);
}
