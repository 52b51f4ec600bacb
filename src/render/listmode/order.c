/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The order in which the device has the events of a group: lines of one window go together, and of those the
 * ones that meet the same slices. The threads of a warp are then busy alike. */
#include "base/mem.h"
#include "base/parallel.h"
#include "listmode/events.h"
#include "listmode/tube.h"
#include "render/listmode/listmode.h"

#include <math.h>
#include <stdlib.h>

enum { KEYS_AT_ONCE = 1 << 13, SLICE_BITS = 15, LAST_SLICE = LR_LISTMODE_KEY_SLICES };

/* Events of one group, from `begin` of the arrays on. */
struct group {
    const struct lr_listmode_compute *compute;
    int64_t begin, count;
    int axis;
    struct lr_listmode_ticket *tickets; /* [count] */
    struct lr_listmode_device_events *events;
};

/* Leaves out slices where the crossing is outside of `limits`. */
static void narrow(int slices[2], double position, double step, const double limits[2])
{
    if (fabs(step) < 1e-9) {
        slices[1] = position > limits[0] && position < limits[1] ? slices[1] : slices[0];
        return;
    }
    const double a = (limits[0] - position) / step, b = (limits[1] - position) / step;
    slices[0] = (int)fmin(fmax(floor(fmin(a, b)), slices[0]), slices[1]);
    slices[1] = (int)fmax(fmin(ceil(fmax(a, b)) + 1.0, slices[1]), slices[0]);
}

/* Windows of up to four voxels, then those of up to five, then others: shaders/listmode/kernel.glsl. */
static uint32_t window_class(const double halves[2])
{
    const int width = (int)(2.0 * fmax(halves[0], halves[1])) + 1;
    return width <= 4 ? 0 : width <= 5 ? 1 : 2;
}

static uint32_t key_of(const struct group *group, int64_t k)
{
    const struct lr_listmode_model *model = group->compute->params.model;
    struct lr_listmode_line line;
    struct lr_listmode_walk walk;
    double halves[2] = {1.0, 1.0};
    int slices[2];
    lr_listmode_line_of(group->compute->params.events, k, group->axis, &line);
    lr_listmode_walk_of(&line, &model->grid, &walk);
    lr_listmode_slices(&walk, slices);
    if (model->kernel == LR_LISTMODE_TUBE) lr_listmode_tube_halves(model, &line, &walk, halves);
    for (int c = 0; c < 2; c++) {
        const double limits[2] = {-halves[c], model->grid.size[walk.across[c]] - 1 + halves[c]};
        narrow(slices, walk.position[c], walk.step[c], limits);
    }
    const uint32_t first = (uint32_t)(slices[0] < LAST_SLICE ? slices[0] : LAST_SLICE);
    const uint32_t last = (uint32_t)(slices[1] < LAST_SLICE ? slices[1] : LAST_SLICE);
    return window_class(halves) << 2 * SLICE_BITS | first << SLICE_BITS | last;
}

static void find_keys(void *user, int64_t begin, int64_t end, int worker)
{
    const struct group *group = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++)
        group->tickets[k] = (struct lr_listmode_ticket){(int32_t)k, key_of(group, group->begin + k)};
}

static void take_order(void *user, int64_t begin, int64_t end, int worker)
{
    const struct group *group = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        const struct lr_listmode_ticket *ticket = &group->tickets[k];
        group->events->order[group->begin + k] = (uint32_t)(group->begin + ticket->number);
        group->events->keys[group->begin + k] = ticket->key;
    }
}

static void order_group(struct group *group, struct lr_listmode_ticket *spare)
{
    const int asked = group->compute->params.threads;
    const int threads = asked > 0 ? asked : lr_num_processors();
    lr_parallel_for(threads, group->count, KEYS_AT_ONCE, find_keys, group);
    lr_listmode_sort_tickets(group->tickets, spare, group->count, threads);
    lr_parallel_for(threads, group->count, KEYS_AT_ONCE, take_order, group);
}

void lr_listmode_key_slices(uint32_t key, int32_t slices[2])
{
    slices[0] = (int32_t)(key >> SLICE_BITS & LAST_SLICE);
    slices[1] = (int32_t)(key & LAST_SLICE);
}

static void order_groups(struct lr_listmode_compute *compute, struct lr_listmode_ticket *const tickets[2])
{
    const struct lr_listmode_events *events = compute->params.events;
    for (int64_t r = 0; r < events->layout.num_pairs; r++) {
        for (int g = 0; g < LR_LISTMODE_GROUPS; g++) {
            const int64_t *ends = &events->groups[r][g];
            order_group(&(struct group){compute, ends[0], ends[1] - ends[0], lr_listmode_group_axis(g), tickets[0],
                                        &compute->events},
                        tickets[1]);
        }
    }
}

lr_status lr_listmode_order(struct lr_listmode_compute *compute)
{
    static const char what[] = "ordering events";
    struct lr_listmode_device_events *events = &compute->events;
    const lr_log *log = compute->params.log;
    const int64_t count = compute->params.events->layout.count;
    const int64_t longest = lr_listmode_longest_group(compute->params.events);
    struct lr_listmode_ticket *tickets[2];
    events->order = lr_alloc(count, sizeof(*events->order), what, log);
    events->keys = lr_alloc(count, sizeof(*events->keys), what, log);
    for (int k = 0; k < 2; k++) tickets[k] = lr_alloc(longest, sizeof(*tickets[k]), what, log);
    const bool has_all = events->order && events->keys && tickets[0] && tickets[1];
    if (has_all) order_groups(compute, tickets);
    free(tickets[0]);
    free(tickets[1]);
    return has_all ? LR_OK : LR_FAILED;
}
