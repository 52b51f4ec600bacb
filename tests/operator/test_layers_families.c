/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Layers of crystals in list mode and in depositions for DIRECT. Events of a layer have the same weight as in a
 * scanner that has only this layer. Argument: the backend. */
#include "fixtures.h"
#include "layered.h"

enum { NUM_EVENTS = 300 };

static lr_grid small_grid(void)
{
    return shifted_grid((const int[3]){9, 8, 7}, (const double[3]){2.1, 2.3, 2.5}, (const double[3]){0.4, -0.7, 0});
}

/* Events, with crystal numbers of the whole scanner and of the part of the scanner. */
struct events {
    lr_event whole[NUM_EVENTS], part[NUM_EVENTS];
    int64_t count;
};

static void project(const lr_lors *lors, const lr_event *events, lr_listmode_kernel kernel, double *values,
                    double *image)
{
    const lr_grid grid = small_grid();
    const lr_events_info info = {.has_tof = true, .tof_resolution_ps = 200};
    lr_operator *op = keep(lr_listmode_create(&filled(lr_listmode_params, .lors = lors, .grid = &grid, .events = events,
                                                      .count = NUM_EVENTS, .info = &info, .kernel = kernel,
                                                      .samples = {1, 1, 1}, .backend = test_backend, .threads = 2)));
    const int64_t voxels = lr_grid_num_voxels(&grid);
    uint64_t seed = 7;
    const double *from = kept_random_doubles(voxels, 0.5, 1.5, &seed);
    lr_vector y = lr_vector_of_doubles(values, NUM_EVENTS);
    assert_ok(lr_operator_forward(op, NULL, vector_of(from, voxels), &y));
    assert_ok(lr_operator_back(op, NULL, &y, vector_of(image, voxels)));
}

static void compare(const double *a, const double *b, int64_t count)
{
    const double largest = largest_number(b, count);
    assert_true(largest > 0);
    for (int64_t k = 0; k < count; k++)
        if (!(fabs(a[k] - b[k]) <= 1e-6 * fmax(b[k], 1e-2 * largest)))
            fail_msg("%.9g in layers, %.9g alone", a[k], b[k]);
}

/* Calls a function for each layer, with a scanner of this layer only, which is destroyed afterwards. */
static void each_layer(lr_scanner *scanner,
                       void (*check)(const lr_lors *whole, const lr_lors *part, const struct events *events))
{
    lr_lors *whole = keep(lr_lors_create(scanner, NULL));
    for (int layer = 0; layer < 2; layer++) {
        struct layered_rest rest = layered_alone(scanner, layer);
        lr_lors *part = keep(lr_lors_create(rest.scanner, NULL));
        static struct events events;
        uint64_t seed = test_seed();
        events.count = 0;
        while (events.count < NUM_EVENTS) {
            const int64_t lor = (int64_t)(test_random(&seed) * (double)part->count);
            lr_event event = {.weight = 1, .tof_mm = (float)(30 * test_random(&seed) - 15)};
            if (lr_lors_in_coincidence(part, lor)) {
                lr_lors_crystals(part, lor, event.crystals);
                events.part[events.count] = event;
                for (int k = 0; k < 2; k++) event.crystals[k] = rest.crystal_of[event.crystals[k]];
                events.whole[events.count++] = event;
            }
        }
        check(whole, part, &events);
    }
}

static void check_listmode(const lr_lors *whole, const lr_lors *part, const struct events *events)
{
    const lr_grid grid = small_grid();
    const int64_t voxels = lr_grid_num_voxels(&grid);
    double values[2][NUM_EVENTS], *images[2] = {kept_doubles(voxels), kept_doubles(voxels)};
    for (int kernel = LR_LISTMODE_TUBE; kernel <= LR_LISTMODE_EXACT; kernel++) {
        if (kernel == LR_LISTMODE_EXACT && test_backend_is("compute")) continue;
        project(whole, events->whole, (lr_listmode_kernel)kernel, values[0], images[0]);
        project(part, events->part, (lr_listmode_kernel)kernel, values[1], images[1]);
        compare(values[0], values[1], NUM_EVENTS);
        compare(images[0], images[1], voxels);
    }
}

/* The ring's front layers would hide other modules if they were not layers, and native refuses such scanners. */
static void list_mode(void **state)
{
    each_layer(layered_ring(), check_listmode);
    if (test_backend_is("cpu")) each_layer(layered_insert(), check_listmode);
}

static lr_deposit *deposit(const lr_scanner *scanner, const lr_event *events)
{
    const lr_events_info info = {.has_tof = true};
    const lr_grid grid = small_grid();
    lr_deposit *made = keep(lr_deposit_create(&filled(
        lr_deposit_params, .scanner = scanner, .grid = &grid, .set = {.azimuths = 5, .tilts = 3, .acceptance_deg = 20},
        .rule = LR_DEPOSIT_TRILINEAR, .info = &info, .backend = test_backend)));
    const lr_event_sink sink = lr_deposit_sink(made);
    assert_ok(sink.take(sink.user, events, NUM_EVENTS), lr_deposit_finish(made));
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
}

static void deposition(void **state)
{
    if (!test_backend_is("native")) each_layer(layered_ring(), check_deposit);
}

/* --- simulated photons --- */

struct layer_counts {
    const lr_scanner *scanner;
    double counts[3]; /* pairs with both photons in front, with one in front, with none */
};

static int layer_of(const lr_scanner *scanner, int crystal)
{
    return scanner->modules[lr_scanner_module_of(scanner, crystal)].layer;
}

static lr_status count_layers(void *user, const lr_event *events, int64_t count)
{
    struct layer_counts *counts = user;
    for (int64_t k = 0; k < count; k++)
        counts->counts[layer_of(counts->scanner, events[k].crystals[0]) +
                       layer_of(counts->scanner, events[k].crystals[1])]++;
    return LR_OK;
}

/* The layers detect as many photon pairs as the elements predict, within three standard deviations. */
static void photons(void **state)
{
    enum { PAIRS = 20000 };
    if (!test_backend_is("cpu")) return;
    lr_scanner *scanner = layered_ring();
    lr_lors *lors = keep(lr_lors_create(scanner, NULL));
    const lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){4, 4, 4});
    lr_image *activity = kept_image(&grid, 1);
    double *values = kept_doubles(lors->count), expected[3] = {0, 0, 0}, sum = 0;
    lr_operator *op = keep(lr_operator_create(
        &filled(lr_operator_params, .lors = lors, .grid = &grid, .backend = test_backend, .mode = LR_MODE_EXACT,
                .samples = {3, 3, 3}, .layers_alone = true, .store = LR_STORE_NO)));
    assert_ok(array_forward_f64(op, kept_equal_doubles(8, 1), values));
    for (int64_t lor = 0; lor < lors->count; lor++) {
        int32_t crystals[2];
        lr_lors_crystals(lors, lor, crystals);
        expected[layer_of(scanner, crystals[0]) + layer_of(scanner, crystals[1])] += values[lor];
        sum += values[lor];
    }
    struct layer_counts found = {.scanner = scanner};
    const lr_event_sink sink = {.take = count_layers, .user = &found};
    assert_ok(lr_events_from_activity(
        &(lr_photon_params){.lors = lors, .activity = activity, .count = PAIRS, .seed = test_seed()}, &sink, NULL));
    for (int k = 0; k < 3; k++) {
        const double p = expected[k] / sum, z = (found.counts[k] - PAIRS * p) / sqrt(PAIRS * p * (1 - p));
        print_message("%d of two behind: %.0f found, %.1f expected, z = %.2f\n", k, found.counts[k], PAIRS * p, z);
        assert_true(fabs(z) < 3);
    }
}

backend_main("cpu", CASES(list_mode, deposition, photons))
