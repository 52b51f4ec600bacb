/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/tables.h"

#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/lend.h"

#include <string.h>

/* Temporary memory per event in bytes: two keys, two numbers, and the gathered arrays. */
enum { EVENT_BYTES = 2 * 4 + 2 * 4 + 4 * 4, NUM_ARRAYS = 4 };

struct ordering {
    const struct lr_cuda_list_order_params *params;
    struct lr_listmode_pieces *order;
    struct lr_cuda_list_memory memory; /* temporary memory */
    lr_cuda_list_sort sort;
    int32_t *gathered[NUM_ARRAYS];
    struct lr_listmode_extent *pieces; /* on the device */
};

static int64_t pieces_of(int64_t count)
{
    return (count + LR_CUDA_LIST_PIECE - 1) / LR_CUDA_LIST_PIECE;
}

int64_t lr_cuda_list_order_bytes(const struct lr_listmode_events *events)
{
    const int64_t longest = lr_listmode_longest_group(events);
    int64_t room = 0;
    (void)lr_cuda_list_sort_room(longest, &room);
    return events->layout.count * (int64_t)sizeof(lr_cuda_list_record) + longest * EVENT_BYTES + room +
           pieces_of(longest) * (int64_t)sizeof(struct lr_listmode_extent);
}

static lr_status check(const struct ordering *ordering, int error)
{
    return lr_cuda_check(error, "ordering events", ordering->params->backend->log);
}

static void *allocate(struct ordering *ordering, int64_t bytes)
{
    return lr_cuda_list_allocate(&ordering->memory, "ordering events", NULL, bytes);
}

/* Orders a group's events, and finds their pieces and lines. */
static lr_status order_group(struct ordering *ordering, int64_t r, int g)
{
    const struct lr_cuda_list_order_params *params = ordering->params;
    const int64_t *ends = &params->backend->events->groups[r][g];
    lr_cuda_list_pass pass = *params->pass;
    const lr_cuda_list_events *events = &pass.events;
    pass.events = lr_cuda_list_events_from(&params->pass->events, ends[0]);
    lr_cuda_list_ordering group = {.pass = pass,
                                   .axis = lr_listmode_group_axis(g),
                                   .has_tof = lr_listmode_group_has_tof(g),
                                   .count = (int32_t)(ends[1] - ends[0]),
                                   .keys = ordering->sort.keys[0],
                                   .numbers = ordering->sort.numbers[0],
                                   .pieces = ordering->pieces};
    struct lr_listmode_extent *to = ordering->order->list + ordering->order->first[r * LR_LISTMODE_GROUPS + g];
    if (group.count == 0) return LR_OK;
    ordering->sort.count = group.count;
    LR_TRY(check(ordering, lr_cuda_launch_list_order(&group, LR_CUDA_LIST_KEYS)));
    LR_TRY(check(ordering, lr_cuda_launch_list_sort(&ordering->sort)));
    group.keys = ordering->sort.keys[1];
    LR_TRY(check(ordering, lr_cuda_launch_list_order(&group, LR_CUDA_LIST_BOUNDS)));
    LR_TRY(check(ordering,
                 (int)cudaMemcpyAsync(to, ordering->pieces, (size_t)pieces_of(group.count) * sizeof(*ordering->pieces),
                                      cudaMemcpyDefault, params->pass->stream)));

    /* Gathers the events in the order of the sorted numbers, and copies them back to their arrays. */
    lr_cuda_list_gather gather = {.numbers = ordering->sort.numbers[1],
                                  .from = {events->crystals[0], events->crystals[1],
                                           (const int32_t *)(const void *)events->tof_mm, events->number},
                                  .num_arrays = NUM_ARRAYS,
                                  .count = group.count,
                                  .stream = pass.stream};
    memcpy(gather.to, ordering->gathered, sizeof(gather.to));
    LR_TRY(check(ordering, lr_cuda_launch_list_gather(&gather)));
    for (int k = 0; k < NUM_ARRAYS; k++) {
        LR_TRY(check(ordering, (int)cudaMemcpyAsync((void *)(uintptr_t)gather.from[k], gather.to[k],
                                                    (size_t)group.count * 4, cudaMemcpyDefault, params->pass->stream)));
    }
    if (params->lines == NULL && params->paths == NULL) return LR_OK;
    group.lines = params->lines != NULL ? params->lines + ends[0] : NULL;
    group.paths = params->paths != NULL ? params->paths + ends[0] : NULL;
    return check(ordering, lr_cuda_launch_list_order(&group, LR_CUDA_LIST_LINES));
}

lr_status lr_cuda_list_order_init(struct lr_listmode_pieces *order, const struct lr_cuda_list_order_params *params)
{
    const lr_log *log = params->backend->log;
    const struct lr_listmode_events *events = params->backend->events;
    struct ordering ordering = {
        .params = params, .order = order, .memory = {.stream = params->pass->stream, .log = log}};
    const int64_t groups = events->layout.num_pairs * LR_LISTMODE_GROUPS;
    *order = (struct lr_listmode_pieces){.each = LR_CUDA_LIST_PIECE};
    lr_status status = lr_listmode_pieces_init(order, events, log);

    /* Temporary memory for the longest group. */
    const int64_t longest = lr_listmode_longest_group(events);
    lr_cuda_list_sort *sort = &ordering.sort;
    if (status == LR_OK) status = check(&ordering, lr_cuda_list_sort_room(longest, &sort->room_bytes));
    if (status == LR_OK) {
        for (int k = 0; k < 2; k++) {
            sort->keys[k] = allocate(&ordering, longest * 4);
            sort->numbers[k] = allocate(&ordering, longest * 4);
        }
        for (int k = 0; k < NUM_ARRAYS; k++) ordering.gathered[k] = allocate(&ordering, longest * 4);
        sort->room = allocate(&ordering, sort->room_bytes);
        ordering.pieces = allocate(&ordering, pieces_of(longest) * (int64_t)sizeof(*ordering.pieces));
        sort->bits = 32;
        sort->stream = params->pass->stream;
        status = ordering.memory.failed ? LR_FAILED : LR_OK;
    }
    for (int64_t k = 0; status == LR_OK && k < groups; k++)
        status = order_group(&ordering, k / LR_LISTMODE_GROUPS, (int)(k % LR_LISTMODE_GROUPS));
    const lr_status waited = check(&ordering, (int)cudaStreamSynchronize(params->pass->stream));
    lr_cuda_list_free(&ordering.memory);
    return status == LR_OK ? waited : status;
}
