/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Simulated photon pairs among modules that hide others are distributed over the LORs like the exact elements. */
#include "hiding.h"

enum { NUM_EVENTS = 60000 };

/* Standard deviations. Some 40 sums are compared, so that one seed in 400 fails by chance. */
#define SIGMAS 4

struct tally {
    const struct hiding *hiding;
    double *counts; /* [num_lors] */
};

static lr_status take_events(void *user, const lr_event *events, int64_t count)
{
    const struct tally *tally = user;
    for (int64_t k = 0; k < count; k++) {
        const lr_lors *lors = tally->hiding->lors;
        const int64_t lor = lr_lors_number(lors, events[k].crystals[0], events[k].crystals[1]);
        assert_true(lor >= 0 && lr_lors_in_coincidence(lors, lor));
        tally->counts[lor]++;
    }
    return LR_OK;
}

/* Expected events of each LOR, from A x, if there are NUM_EVENTS in all. */
static double *expect(struct hiding *hiding, const lr_grid *grid)
{
    lr_operator *op = keep(
        lr_operator_create(&filled(lr_operator_params, .lors = hiding->lors, .grid = grid, .backend = "cpu",
                                   .mode = LR_MODE_EXACT, .samples = {1, 1, 1}, .store = LR_STORE_NO, .threads = 2)));
    double *row = kept_rows(op, 0, 1), sum = 0;
    for (int64_t lor = 0; lor < hiding->lors->count; lor++) sum += row[lor];
    for (int64_t lor = 0; lor < hiding->lors->count; lor++) row[lor] *= NUM_EVENTS / sum;
    return row;
}

static void test_events(void **state)
{
    uint64_t seed = test_seed();
    for (int n = 0; n < length_of(arrangements); n++) {
        struct hiding hiding;
        hiding_init(&hiding, &arrangements[n], 1);
        for (int point = 0; point < arrangements[n].num_points; point++) {
            /* A voxel so small that it equals the point. */
            lr_grid grid = lr_grid_centred((int[3]){1, 1, 1}, (double[3]){1e-6, 1e-6, 1e-6});
            memcpy(grid.origin_mm, arrangements[n].points_mm[point], sizeof(grid.origin_mm));
            double *counts = kept_doubles(hiding.lors->count), *expected = expect(&hiding, &grid);
            lr_image *activity = keep(lr_image_create(&grid, NULL));
            activity->values[0] = 1;
            struct tally tally = {&hiding, counts};
            const lr_photon_params params =
                filled(lr_photon_params, .lors = hiding.lors, .activity = activity, .count = NUM_EVENTS,
                       .tof_resolution_ps = 300, .seed = seed++, .threads = 2);
            assert_ok(lr_events_from_activity(&params, &(lr_event_sink){.take = take_events, .user = &tally}, NULL));
            char name[64];
            snprintf(name, sizeof(name), "%s, point %d", arrangements[n].name, point);
            check_counts(name, counts, expected, hiding.lors->count, 1, 10, SIGMAS); /* the total is fitted */
            double sums[MOST_PANELS][MOST_PANELS][2] = {{{0}}};
            for (int64_t pair = 0; pair < hiding.lors->num_pairs; pair++) {
                const int32_t *modules = hiding.lors->pairs[pair];
                double *sum = sums[hiding.panels[modules[0]]][hiding.panels[modules[1]]];
                for (int64_t k = hiding.lors->offsets[pair]; k < hiding.lors->offsets[pair + 1]; k++) {
                    sum[0] += counts[k];
                    sum[1] += expected[k];
                }
            }
            for (int a = 0; a < MOST_PANELS; a++) {
                for (int b = a; b < MOST_PANELS; b++) {
                    const double *sum = sums[a][b];
                    if (fabs(sum[0] - sum[1]) > SIGMAS * sqrt(sum[1]) + 1e-9) {
                        fail_msg("%s, panels %d and %d: %g counted, %g expected", hiding.arrangement->name, a, b,
                                 sum[0], sum[1]);
                    }
                }
            }
        }
    }
}

test_main("hiding events", CASE(test_events))
