/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/schedule.h"

#include "base/mem.h"
#include "base/order.h"
#include "base/parallel.h"
#include "listmode/line.h"

#include <math.h>
#include <stdlib.h>

const int32_t lr_listmode_all[2] = {0, INT32_MAX};

/* --- pieces --- */

lr_status lr_listmode_pieces_init(struct lr_listmode_pieces *pieces, const struct lr_listmode_events *events,
                                  const lr_log *log)
{
    const int64_t groups = events->layout.num_pairs * LR_LISTMODE_GROUPS;
    pieces->first = lr_alloc(groups + 1, sizeof(*pieces->first), "ordering events", log);
    if (pieces->first == NULL) return LR_FAILED;
    for (int64_t k = 0; k < groups; k++) {
        const int64_t *ends = &events->groups[k / LR_LISTMODE_GROUPS][k % LR_LISTMODE_GROUPS];
        pieces->first[k + 1] = pieces->first[k] + (ends[1] - ends[0] + pieces->each - 1) / pieces->each;
    }
    pieces->list = lr_alloc(pieces->first[groups], sizeof(*pieces->list), "ordering events", log);
    return pieces->list != NULL ? LR_OK : LR_FAILED;
}

void lr_listmode_pieces_finish(struct lr_listmode_pieces *pieces)
{
    lr_free_all(pieces->first, pieces->list);
    *pieces = (struct lr_listmode_pieces){0};
}

/* --- order on the host --- */

enum { KEYS_AT_ONCE = 1 << 13, SLICE_BITS = 15, LAST_SLICE = LR_LISTMODE_KEY_SLICES };

/* The events of one group, which begin at index `begin` of the arrays. */
struct group {
    const struct lr_listmode_backend_params *params;
    int64_t begin, count;
    int axis, each;
    struct lr_listmode_ticket *tickets; /* [count] */
    uint32_t *order;                    /* [count] */
    struct lr_listmode_extent *pieces;
};

static void find_keys(void *user, int64_t begin, int64_t end)
{
    const struct group *group = user;
    const struct lr_listmode_model *model = group->params->model;
    for (int64_t k = begin; k < end; k++) {
        struct lr_listmode_line line;
        struct lr_listmode_walk walk;
        double halves[2] = {1.0, 1.0};
        int slices[2];
        lr_listmode_line_of(group->params->events, group->begin + k, group->axis, &line);
        lr_listmode_walk_of(&line, &model->grid, &walk);
        lr_listmode_slices(&walk, slices);
        if (model->kernel == LR_LISTMODE_TUBE) lr_listmode_tube_halves(model, &line, &walk, halves);
        for (int c = 0; c < 2; c++) {
            /* A slice is skipped if the line crosses it so far outside the grid that no voxel of its window is in the
             * grid. */
            const double low = -halves[c], high = model->grid.size[walk.across[c]] - 1 + halves[c];
            const double position = walk.position[c], step = walk.step[c];
            if (fabs(step) < 1e-9) {
                slices[1] = position > low && position < high ? slices[1] : slices[0];
                continue;
            }
            const double a = (low - position) / step, b = (high - position) / step;
            slices[0] = (int)fmin(fmax(floor(fmin(a, b)), slices[0]), slices[1]);
            slices[1] = (int)fmax(fmin(ceil(fmax(a, b)) + 1.0, slices[1]), slices[0]);
        }
        const uint32_t first = (uint32_t)(slices[0] < LAST_SLICE ? slices[0] : LAST_SLICE);
        const uint32_t last = (uint32_t)(slices[1] < LAST_SLICE ? slices[1] : LAST_SLICE);
        /* Windows of up to four voxels, and of up to five, have separate code in shaders/listmode/kernel.glsl. */
        const int width = (int)(2.0 * fmax(halves[0], halves[1])) + 1;
        const uint32_t size = width <= 4 ? 0u : width <= 5 ? 1u : 2u;
        group->tickets[k] =
            (struct lr_listmode_ticket){(int32_t)k, size << 2 * SLICE_BITS | first << SLICE_BITS | last};
    }
}

static void take_order(void *user, int64_t begin, int64_t end)
{
    const struct group *group = user;
    for (int64_t k = begin; k < end; k++) {
        const struct lr_listmode_ticket *ticket = &group->tickets[k];
        const int32_t first = (int32_t)(ticket->key >> SLICE_BITS & LAST_SLICE);
        const int32_t last = (int32_t)(ticket->key & LAST_SLICE);
        struct lr_listmode_extent *piece = &group->pieces[k / group->each];
        if (k % group->each == 0) *piece = (struct lr_listmode_extent){{LAST_SLICE, 0}, 0};
        if (first < last) {
            piece->slices[0] = (int32_t)lr_smaller(piece->slices[0], first);
            piece->slices[1] = (int32_t)lr_larger(piece->slices[1], last);
            piece->visits += last - first;
        }
        group->order[k] = (uint32_t)(group->begin + ticket->number);
    }
}

lr_status lr_listmode_order(const struct lr_listmode_backend_params *params, uint32_t *order,
                            struct lr_listmode_pieces *pieces)
{
    const struct lr_listmode_events *events = params->events;
    const int64_t longest = lr_listmode_longest_group(events);
    const int threads = params->threads > 0 ? params->threads : lr_num_processors();
    struct lr_listmode_ticket *tickets[2];
    for (int k = 0; k < 2; k++) tickets[k] = lr_alloc(longest, sizeof(*tickets[k]), "ordering events", params->log);
    const bool has_all = tickets[0] != NULL && tickets[1] != NULL;
    const lr_status status = has_all ? lr_listmode_pieces_init(pieces, events, params->log) : LR_FAILED;
    for (int64_t k = 0; status == LR_OK && k < events->layout.num_pairs * LR_LISTMODE_GROUPS; k++) {
        const int g = (int)(k % LR_LISTMODE_GROUPS);
        const int64_t *ends = &events->groups[k / LR_LISTMODE_GROUPS][g];
        struct group group = {.params = params,
                              .begin = ends[0],
                              .count = ends[1] - ends[0],
                              .axis = lr_listmode_group_axis(g),
                              .each = pieces->each,
                              .tickets = tickets[0],
                              .order = order + ends[0],
                              .pieces = pieces->list + pieces->first[k]};
        lr_parallel_for(threads, group.count, KEYS_AT_ONCE, find_keys, &group);
        lr_listmode_sort_tickets(group.tickets, tickets[1], group.count, threads);
        lr_parallel_for(threads, group.count, KEYS_AT_ONCE, take_order, &group);
    }
    lr_free_all(tickets[0], tickets[1]);
    return status;
}

/* --- portions --- */

/* Returns the work of piece k of a portion. */
static int64_t work_of_piece(const struct lr_listmode_cut *cut, const struct lr_listmode_portion *portion, int64_t k,
                             const int32_t slices[2])
{
    const int64_t count = portion->events[1] - portion->events[0];
    const struct lr_listmode_extent *piece = &portion->pieces[k];
    const int64_t low = lr_larger(piece->slices[0], slices[0]);
    const int64_t high = lr_smaller(piece->slices[1], slices[1]);
    const int64_t length = lr_larger(piece->slices[1] - piece->slices[0], 1);
    return lr_larger(high - low, 0) * piece->visits / length +
           cut->line_work * lr_smaller(count - k * cut->each, cut->each);
}

int64_t lr_listmode_work(const struct lr_listmode_cut *cut, const struct lr_listmode_portion *portion,
                         const int32_t slices[2])
{
    const int64_t count = portion->events[1] - portion->events[0];
    if (portion->pieces == NULL) return count * (slices[1] - slices[0] + cut->line_work);
    int64_t work = 0;
    for (int64_t k = 0; k * cut->each < count; k++) work += work_of_piece(cut, portion, k, slices);
    return work;
}

/* Returns the portion with one more piece. end: the end of the group. */
static struct lr_listmode_portion widen(const struct lr_listmode_cut *cut, const struct lr_listmode_portion *portion,
                                        int64_t end)
{
    const int64_t count = portion->events[1] - portion->events[0];
    const struct lr_listmode_extent *piece = &portion->pieces[count / cut->each];
    struct lr_listmode_portion wider = *portion;
    wider.events[1] += lr_smaller(end - portion->events[1], cut->each);
    if (piece->slices[0] < piece->slices[1]) {
        wider.slices[0] = (int32_t)lr_smaller(portion->slices[0], piece->slices[0]);
        wider.slices[1] = (int32_t)lr_larger(portion->slices[1], piece->slices[1]);
    }
    return wider;
}

struct lr_listmode_portion lr_listmode_next_portion(const struct lr_listmode_cut *cut,
                                                    const struct lr_listmode_extent *pieces, const int64_t ends[2])
{
    const int64_t first = ends[0], end = ends[1];
    const struct lr_listmode_portion empty = {{first, first}, {INT32_MAX, 0}, pieces};
    struct lr_listmode_portion portion = widen(cut, &empty, end);
    int64_t work = lr_listmode_work(cut, &portion, portion.slices);
    while (portion.events[1] < end && portion.events[1] - first < cut->most_events) {
        const struct lr_listmode_portion wider = widen(cut, &portion, end);
        const int64_t slabs = lr_listmode_slabs(cut, portion.slices[1] - portion.slices[0]);
        const int64_t more = lr_listmode_slabs(cut, wider.slices[1] - wider.slices[0]);
        const int64_t enough = cut->job_work * slabs;
        if (work >= enough || (more > slabs && 2 * work >= enough)) break;
        const int64_t last = (portion.events[1] - first) / cut->each;
        const bool has_new_slices = wider.slices[0] != portion.slices[0] || wider.slices[1] != portion.slices[1];
        portion = wider;
        work = has_new_slices ? lr_listmode_work(cut, &portion, portion.slices)
                              : work + work_of_piece(cut, &portion, last, portion.slices);
    }
    portion.slices[0] = (int32_t)lr_smaller(portion.slices[0], portion.slices[1]);
    return portion;
}
