/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Layers of crystals in list mode and in depositions for DIRECT. Events of a layer have the same weight as in a
 * scanner that has only this layer. Argument: the backend. */
#include "fixtures.h"
#include "layered.h"

static const char *backend;

enum { NUM_EVENTS = 300 };

static lr_grid small_grid(void)
{
    lr_grid grid = lr_grid_centred((const int[3]){9, 8, 7}, (const double[3]){2.1, 2.3, 2.5});
    grid.origin_mm[0] += 0.4;
    grid.origin_mm[1] -= 0.7;
    return grid;
}

/* Events, with crystal numbers of the whole scanner and of the part of the scanner. */
struct events {
    lr_event whole[NUM_EVENTS], part[NUM_EVENTS];
    int64_t count;
};

static void make_events(const lr_lors *part, const struct layered_rest *rest, struct events *events)
{
    uint64_t seed = test_seed();
    events->count = 0;
    while (events->count < NUM_EVENTS) {
        const int64_t lor = (int64_t)(test_random(&seed) * (double)part->count);
        lr_event event = {.weight = 1, .tof_mm = (float)(30 * test_random(&seed) - 15)};
        if (lr_lors_in_coincidence(part, lor)) {
            lr_lors_crystals(part, lor, event.crystals);
            events->part[events->count] = event;
            for (int k = 0; k < 2; k++) event.crystals[k] = rest->crystal_of[event.crystals[k]];
            events->whole[events->count++] = event;
        }
    }
}

static void project(const lr_lors *lors, const lr_event *events, lr_listmode_kernel kernel, double *values,
                    double *image)
{
    struct test_log log;
    test_log_init(&log);
    const lr_grid grid = small_grid();
    const lr_events_info info = {.has_tof = true, .tof_resolution_ps = 200};
    lr_operator *op = lr_listmode_create(&(lr_listmode_params){.lors = lors,
                                                               .grid = &grid,
                                                               .events = events,
                                                               .count = NUM_EVENTS,
                                                               .info = &info,
                                                               .kernel = kernel,
                                                               .samples = {1, 1, 1},
                                                               .backend = backend,
                                                               .threads = 2,
                                                               .log = &log.log});
    if (op == NULL) fail_msg("%s", log.error);
    const int64_t voxels = lr_grid_num_voxels(&grid);
    uint64_t seed = 7;
    double *from = fixture_doubles(voxels > NUM_EVENTS ? voxels : NUM_EVENTS);
    fixture_fill(from, voxels, (const double[2]){0.5, 1.5}, &seed);
    const lr_vector x = lr_vector_of_doubles(from, voxels);
    lr_vector y = lr_vector_of_doubles(values, NUM_EVENTS);
    assert_int_equal(lr_operator_forward(op, NULL, &x, &y), LR_OK);
    lr_vector back = lr_vector_of_doubles(image, voxels);
    assert_int_equal(lr_operator_back(op, NULL, &y, &back), LR_OK);
    lr_operator_destroy(op);
    free(from);
}

static void compare(const double *a, const double *b, int64_t count)
{
    double largest = 0;
    for (int64_t k = 0; k < count; k++) largest = fmax(largest, b[k]);
    assert_true(largest > 0);
    for (int64_t k = 0; k < count; k++)
        if (!(fabs(a[k] - b[k]) <= 1e-6 * fmax(b[k], 1e-2 * largest)))
            fail_msg("%.9g in layers, %.9g alone", a[k], b[k]);
}

/* Calls back with each layer's part of a scanner, which is destroyed. */
static void each_layer(lr_scanner *scanner,
                       void (*check)(const lr_lors *whole, const lr_lors *part, const struct events *events))
{
    lr_lors *whole = lr_lors_create(scanner, NULL);
    assert_non_null(whole);
    for (int layer = 0; layer < 2; layer++) {
        struct layered_rest rest = layered_alone(scanner, layer);
        lr_lors *part = lr_lors_create(rest.scanner, NULL);
        static struct events events;
        assert_non_null(part);
        make_events(part, &rest, &events);
        check(whole, part, &events);
        lr_lors_destroy(part);
        layered_rest_finish(&rest);
    }
    lr_lors_destroy(whole);
    lr_scanner_destroy(scanner);
}

static void check_listmode(const lr_lors *whole, const lr_lors *part, const struct events *events)
{
    const lr_grid grid = small_grid();
    const int64_t voxels = lr_grid_num_voxels(&grid);
    double values[2][NUM_EVENTS];
    double *images[2] = {fixture_doubles(voxels), fixture_doubles(voxels)};
    for (int kernel = LR_LISTMODE_TUBE; kernel <= LR_LISTMODE_EXACT; kernel++) {
        if (kernel == LR_LISTMODE_EXACT && strcmp(backend, "compute") == 0) continue;
        project(whole, events->whole, (lr_listmode_kernel)kernel, values[0], images[0]);
        project(part, events->part, (lr_listmode_kernel)kernel, values[1], images[1]);
        compare(values[0], values[1], NUM_EVENTS);
        compare(images[0], images[1], voxels);
    }
    free(images[0]);
    free(images[1]);
}

/* The ring's front layers would hide others, were they none, and native refuses such scanners. */
static void list_mode(void **state)
{
    (void)state;
    each_layer(layered_ring(), check_listmode);
}

static void list_mode_before_others(void **state)
{
    (void)state;
    if (strcmp(backend, "cpu") == 0) each_layer(layered_insert(), check_listmode);
}

static lr_deposit *deposit(const lr_scanner *scanner, const lr_event *events)
{
    struct test_log log;
    test_log_init(&log);
    const lr_events_info info = {.has_tof = true};
    const lr_grid grid = small_grid();
    lr_deposit *made = lr_deposit_create(&(lr_deposit_params){.scanner = scanner,
                                                              .grid = &grid,
                                                              .set = {.azimuths = 5, .tilts = 3, .acceptance_deg = 20},
                                                              .rule = LR_DEPOSIT_TRILINEAR,
                                                              .info = &info,
                                                              .backend = backend,
                                                              .log = &log.log});
    if (made == NULL) fail_msg("%s", log.error);
    const lr_event_sink sink = lr_deposit_sink(made);
    assert_int_equal(sink.take(sink.user, events, NUM_EVENTS), LR_OK);
    assert_int_equal(lr_deposit_finish(made), LR_OK);
    return made;
}

static void check_deposit(const lr_lors *whole, const lr_lors *part, const struct events *events)
{
    lr_deposit *made[2] = {deposit(whole->scanner, events->whole), deposit(part->scanner, events->part)};
    const lr_histo_images *images[2] = {lr_deposit_get_images(made[0]), lr_deposit_get_images(made[1])};
    const int64_t count = images[0]->num_views * lr_grid_num_voxels(&images[0]->grid);
    assert_int_equal(images[0]->num_views, images[1]->num_views);
    assert_true(lr_deposit_get_counts(made[0])->deposited > NUM_EVENTS / 10);
    for (int64_t k = 0; k < count; k++) assert_true(images[0]->values[k] == images[1]->values[k]);
    lr_deposit_destroy(made[0]);
    lr_deposit_destroy(made[1]);
}

static void deposition(void **state)
{
    (void)state;
    if (strcmp(backend, "native") != 0) each_layer(layered_ring(), check_deposit);
}

/* --- simulated photons --- */

struct layer_counts {
    const lr_scanner *scanner;
    double counts[3]; /* both in front, one in front, none */
};

static int layer_of(const lr_scanner *scanner, int crystal)
{
    return scanner->modules[lr_scanner_module_of(scanner, crystal)].layer;
}

static lr_status count_layers(void *user, const lr_event *events, int64_t count)
{
    struct layer_counts *counts = user;
    for (int64_t k = 0; k < count; k++) {
        counts->counts[layer_of(counts->scanner, events[k].crystals[0]) +
                       layer_of(counts->scanner, events[k].crystals[1])]++;
    }
    return LR_OK;
}

/* Photon pairs are met in layers as often as the elements say, within three standard deviations. */
static void photons(void **state)
{
    (void)state;
    enum { PAIRS = 20000 };
    if (strcmp(backend, "cpu") != 0) return;
    lr_scanner *scanner = layered_ring();
    lr_lors *lors = lr_lors_create(scanner, NULL);
    const lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){4, 4, 4});
    lr_image *activity = lr_image_create(&grid, NULL);
    double ones[8], *values = fixture_doubles(lors->count), expected[3] = {0, 0, 0}, sum = 0;
    for (int v = 0; v < 8; v++) {
        ones[v] = 1;
        activity->values[v] = 1;
    }
    lr_operator *op = fixture_operator(&(lr_operator_params){.lors = lors,
                                                             .grid = &grid,
                                                             .backend = backend,
                                                             .mode = LR_MODE_EXACT,
                                                             .samples = {3, 3, 3},
                                                             .layers_alone = true,
                                                             .store = LR_STORE_NO});
    assert_int_equal(array_forward_f64(op, ones, values), LR_OK);
    for (int64_t lor = 0; lor < lors->count; lor++) {
        int32_t crystals[2];
        lr_lors_crystals(lors, lor, crystals);
        expected[layer_of(scanner, crystals[0]) + layer_of(scanner, crystals[1])] += values[lor];
        sum += values[lor];
    }
    struct layer_counts found = {.scanner = scanner};
    const lr_event_sink sink = {.take = count_layers, .user = &found};
    assert_int_equal(
        lr_events_from_activity(
            &(lr_photon_params){.lors = lors, .activity = activity, .count = PAIRS, .seed = test_seed()}, &sink, NULL),
        LR_OK);
    for (int k = 0; k < 3; k++) {
        const double p = expected[k] / sum, z = (found.counts[k] - PAIRS * p) / sqrt(PAIRS * p * (1 - p));
        print_message("%d of two behind: %.0f found, %.1f expected, z = %.2f\n", k, found.counts[k], PAIRS * p, z);
        assert_true(fabs(z) < 3);
    }
    lr_operator_destroy(op);
    lr_image_destroy(activity);
    free(values);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_mode),
        cmocka_unit_test(list_mode_before_others),
        cmocka_unit_test(deposition),
        cmocka_unit_test(photons),
    };
    backend = argc > 1 ? argv[1] : "cpu";
    if (!fixture_backend_is_usable(backend)) return 77;
    return cmocka_run_group_tests_name("layers in all families", tests, NULL, NULL);
}
