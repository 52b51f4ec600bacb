/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/tables.h"

#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/lend.h"
#include "device/place.h"
#include "listmode/line.h"

#include <stdlib.h>
#include <string.h>

/* --- memory --- */

void *lr_cuda_list_allocate(struct lr_cuda_list_memory *memory, const char *what, const void *from, int64_t bytes)
{
    if (memory->failed) return NULL;
    void **address = &memory->blocks[memory->count];
    cudaError_t error = cudaMalloc(address, bytes > 0 ? (size_t)bytes : sizeof(double));
    memory->failed = error != cudaSuccess;
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        (void)(lr_error(memory->log, LR_FAILED,
                        "%s: no memory for %.4g MiB on the CUDA device: take fewer events or a smaller "
                        "image, or close other programs that use it",
                        what, (double)bytes / 0x1p20));
        return NULL;
    }
    if (error == cudaSuccess) {
        memory->count++;
        memory->bytes += bytes;
        if (from != NULL && bytes > 0)
            error = cudaMemcpyAsync(*address, from, (size_t)bytes, cudaMemcpyDefault, memory->stream);
    }
    memory->failed = lr_cuda_check((int)error, what, memory->log) != LR_OK;
    return memory->failed ? NULL : *address;
}

void lr_cuda_list_free(struct lr_cuda_list_memory *memory)
{
    if (memory->texture != 0) cudaDestroyTextureObject(memory->texture);
    for (int k = 0; k < memory->count; k++) cudaFree(memory->blocks[k]);
    *memory = (struct lr_cuda_list_memory){.stream = memory->stream, .log = memory->log};
}

/* --- tables on the host, in the layout that passes read --- */

lr_cuda_list_hit *lr_cuda_list_hits(const struct lr_listmode_events *events, const lr_log *log)
{
    lr_cuda_list_hit *hits = lr_alloc(events->num_crystals, sizeof(*hits), "crystals", log);
    for (int c = 0; hits != NULL && c < events->num_crystals; c++) {
        for (int k = 0; k < 3; k++) hits[c].mm[k] = events->hits[c][k];
        hits[c].kind = events->kind_of != NULL ? events->kind_of[c] : 0.0;
    }
    return hits;
}

/* --- on the device --- */

lr_status lr_cuda_list_tables_init(lr_cuda_list_pass *pass, const struct lr_listmode_backend_params *params,
                                   bool are_streamed, struct lr_cuda_list_memory *memory)
{
    static const char what[] = "events";
    const struct lr_listmode_events *events = params->events;
    const lr_listmode_tube *tube = &params->model->tube;
    lr_cuda_list_hit *hits = lr_cuda_list_hits(events, params->log);
    float *table = tube->table != NULL ? lr_listmode_tube_table(tube, params->log) : NULL;
    const bool has_all = hits != NULL && (table != NULL || tube->table == NULL);
    if (has_all) {
        const int64_t kinds = (int64_t)events->num_kinds * events->num_kinds * (int64_t)sizeof(double);
        const int64_t count = events->layout.count, number = sizeof(int32_t);
        lr_cuda_list_events *to = &pass->events;
        to->num_kinds = events->num_kinds;
        to->sigma_mm = lr_cuda_list_allocate(memory, what, events->sigma_mm, kinds);
        if (events->bin_mm != NULL) to->bin_mm = lr_cuda_list_allocate(memory, what, events->bin_mm, kinds);
        if (!are_streamed && events->held != NULL) {
            void *const *held = events->held->arrays;
            to->crystals[0] = held[0];
            to->crystals[1] = held[1];
            to->tof_mm = held[2];
            to->number = held[3];
        } else if (!are_streamed) {
            to->crystals[0] = lr_cuda_list_allocate(memory, what, events->crystals[0], count * number);
            to->crystals[1] = lr_cuda_list_allocate(memory, what, events->crystals[1], count * number);
            to->tof_mm = lr_cuda_list_allocate(memory, what, events->tof_mm, count * number);
            to->number = lr_cuda_list_allocate(memory, what, events->number, count * number);
        }
        to->hits = lr_cuda_list_allocate(memory, what, hits, events->num_crystals * (int64_t)sizeof(*hits));
        if (table != NULL) {
            const int64_t bytes = (tube->table_count + 1) * (int64_t)sizeof(*table);
            pass->tube.table = lr_cuda_list_allocate(memory, what, table, bytes);
            if (params->variant != LR_LISTMODE_FASTEST && !memory->failed) {
                const struct cudaTextureDesc texels = {.readMode = cudaReadModeElementType};
                struct cudaResourceDesc resource = {.resType = cudaResourceTypeLinear};
                resource.res.linear.devPtr = (void *)(uintptr_t)pass->tube.table;
                resource.res.linear.desc = (struct cudaChannelFormatDesc){32, 0, 0, 0, cudaChannelFormatKindFloat};
                resource.res.linear.sizeInBytes = (size_t)bytes;
                const cudaError_t error = cudaCreateTextureObject(&memory->texture, &resource, &texels, NULL);
                memory->failed = lr_cuda_check((int)error, "the function of a tube", params->log) != LR_OK;
                pass->tube.texture = memory->texture;
            }
        }
    }

    const lr_status status = lr_cuda_check((int)cudaStreamSynchronize(memory->stream), what, params->log);
    lr_free_all(hits, table);
    return has_all && !memory->failed ? status : LR_FAILED;
}

lr_cuda_list_events lr_cuda_list_events_from(const lr_cuda_list_events *events, int64_t begin)
{
    lr_cuda_list_events from = *events;
    from.crystals[0] += begin;
    from.crystals[1] += begin;
    from.tof_mm += begin;
    from.number += begin;
    from.lines = events->lines != NULL ? events->lines + begin : NULL;
    from.paths = events->paths != NULL ? events->paths + begin : NULL;
    return from;
}

int64_t lr_cuda_list_budget(const struct lr_listmode_backend_params *params)
{
    const struct lr_listmode_events *events = params->events;
    const int64_t points = events->are_lines ? events->num_crystals * (int64_t)sizeof(lr_cuda_list_hit) : 0;
    const int64_t all = lr_place_budget(params->place, params->max_memory_bytes, 2);
    return all > points ? all - points : 0;
}

/* The sums of a launch take an eighth of the memory, but a launch has at most MOST_SUMS sums. */
enum { SHARE_OF_SUMS = 8, MOST_SUMS = 1 << 26 };

struct lr_cuda_list_shares lr_cuda_list_share_memory(const struct lr_listmode_backend_params *params, int64_t numbers)
{
    const int64_t size = (int64_t)sizeof(float), all = lr_cuda_list_budget(params);
    const int64_t bytes = numbers < all / size ? all - numbers * size : 0;
    const int64_t sums = bytes / SHARE_OF_SUMS / size;
    const int64_t most_sums = sums < 1 ? 1 : sums < MOST_SUMS ? sums : MOST_SUMS;
    return (struct lr_cuda_list_shares){most_sums, bytes - most_sums * size};
}

/* The largest number of events of a piece. For larger pieces, page-locking takes longer than the faster transfer
 * saves. */
enum { MOST_ROOM = 1 << 20 };

bool lr_cuda_list_pieces_ensure(struct lr_cuda_list_pieces *pieces, int64_t most)
{
    const int64_t room = most < MOST_ROOM ? most : MOST_ROOM;
    bool has_all = true;
    if (pieces->room >= room) return true;
    lr_cuda_list_pieces_finish(pieces);
    for (int k = 0; k < LR_CUDA_LIST_PIECES && has_all; k++) {
        void *memory = NULL;
        has_all = cudaEventCreateWithFlags(&pieces->list[k].sent, cudaEventDisableTiming) == cudaSuccess &&
                  cudaMallocHost(&memory, (size_t)room * LR_CUDA_LIST_SENT * sizeof(int32_t)) == cudaSuccess;
        if (!has_all) (void)cudaGetLastError(); /* later calls must not report this error */
        for (int array = 0; has_all && array < LR_CUDA_LIST_SENT; array++)
            pieces->list[k].arrays[array] = (int32_t *)memory + array * room;
    }
    pieces->room = has_all ? room : 0;
    return has_all;
}

void lr_cuda_list_pieces_finish(struct lr_cuda_list_pieces *pieces)
{
    for (int k = 0; k < LR_CUDA_LIST_PIECES; k++) {
        if (pieces->list[k].arrays[0] != NULL) cudaFreeHost(pieces->list[k].arrays[0]);
        if (pieces->list[k].sent != NULL) cudaEventDestroy(pieces->list[k].sent);
    }
    *pieces = (struct lr_cuda_list_pieces){0};
}

static lr_status check(const struct lr_cuda_list_sending *sending, cudaError_t error)
{
    return lr_cuda_check((int)error, "events on their way", sending->log);
}

lr_status lr_cuda_list_pieces_send(struct lr_cuda_list_pieces *pieces, const struct lr_cuda_list_sending *sending)
{
    for (int64_t begin = sending->begin; begin < sending->end; begin += pieces->room) {
        const int64_t left = sending->end - begin, count = left < pieces->room ? left : pieces->room;
        const int k = pieces->next;
        int32_t *const *arrays = pieces->list[k].arrays;
        pieces->next = (k + 1) % LR_CUDA_LIST_PIECES;
        LR_TRY(check(sending, cudaEventSynchronize(pieces->list[k].sent)));
        const struct lr_listmode_piece piece = {.begin = begin,
                                                .end = begin + count,
                                                .threads = sending->threads,
                                                .crystals = {arrays[0], arrays[1]},
                                                .tof_mm = (float *)(void *)arrays[2]};
        LR_TRY(lr_listmode_events_take(sending->events, &piece, sending->log));
        for (int array = 0; array < LR_CUDA_LIST_SENT; array++) {
            int32_t *to = sending->to[array] + (begin - sending->begin);
            LR_TRY(check(sending, cudaMemcpyAsync(to, arrays[array], (size_t)count * sizeof(int32_t), cudaMemcpyDefault,
                                                  sending->stream)));
        }
        LR_TRY(check(sending, cudaEventRecord(pieces->list[k].sent, sending->stream)));
    }
    return LR_OK;
}

/* --- the order of events --- */

/* Bytes of temporary memory that ordering takes per event: two keys, two numbers, and the gathered arrays. */
enum { EVENT_BYTES = 2 * 4 + 2 * 4 + 4 * 4, NUM_ARRAYS = 4 };

struct ordering {
    const struct lr_cuda_list_order_params *params;
    struct lr_listmode_pieces *order;
    struct lr_cuda_list_memory memory; /* temporary memory */
    lr_cuda_list_sort sort;
    int32_t *gathered[NUM_ARRAYS];
    struct lr_listmode_extent *pieces; /* the pieces of all groups, in device memory */
};

int64_t lr_cuda_list_order_bytes(const struct lr_listmode_events *events)
{
    const int64_t longest = lr_listmode_longest_group(events);
    const int64_t most_pieces =
        events->layout.count / LR_CUDA_LIST_PIECE + events->layout.num_pairs * LR_LISTMODE_GROUPS;
    int64_t room = 0;
    (void)lr_cuda_list_sort_room(longest, &room);
    return events->layout.count * (int64_t)sizeof(lr_cuda_list_record) + longest * EVENT_BYTES + room +
           most_pieces * (int64_t)sizeof(struct lr_listmode_extent);
}

static lr_status check_order(const struct ordering *ordering, int error)
{
    return lr_cuda_check(error, "ordering events", ordering->params->backend->log);
}

static void *allocate(struct ordering *ordering, int64_t bytes)
{
    return lr_cuda_list_allocate(&ordering->memory, "ordering events", NULL, bytes);
}

/* Queues the ordering of a group's events, and the search for their pieces and lines. */
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
                                   .pieces = ordering->pieces + ordering->order->first[r * LR_LISTMODE_GROUPS + g]};
    if (group.count == 0) return LR_OK;
    ordering->sort.count = group.count;
    LR_TRY(check_order(ordering, lr_cuda_launch_list_order(&group, LR_CUDA_LIST_KEYS)));
    LR_TRY(check_order(ordering, lr_cuda_launch_list_sort(&ordering->sort)));
    group.keys = ordering->sort.keys[1];
    LR_TRY(check_order(ordering, lr_cuda_launch_list_order(&group, LR_CUDA_LIST_BOUNDS)));

    /* Gathers the events in the order of the sorted numbers, then copies them back to their arrays. */
    lr_cuda_list_gather gather = {.numbers = ordering->sort.numbers[1],
                                  .from = {events->crystals[0], events->crystals[1],
                                           (const int32_t *)(const void *)events->tof_mm, events->number},
                                  .num_arrays = NUM_ARRAYS,
                                  .count = group.count,
                                  .stream = pass.stream};
    memcpy(gather.to, ordering->gathered, sizeof(gather.to));
    LR_TRY(check_order(ordering, lr_cuda_launch_list_gather(&gather)));
    for (int k = 0; k < NUM_ARRAYS; k++) {
        LR_TRY(check_order(ordering,
                           (int)cudaMemcpyAsync((void *)(uintptr_t)gather.from[k], gather.to[k],
                                                (size_t)group.count * 4, cudaMemcpyDefault, params->pass->stream)));
    }
    if (params->lines == NULL && params->paths == NULL) return LR_OK;
    group.lines = params->lines != NULL ? params->lines + ends[0] : NULL;
    group.paths = params->paths != NULL ? params->paths + ends[0] : NULL;
    return check_order(ordering, lr_cuda_launch_list_order(&group, LR_CUDA_LIST_LINES));
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

    /* Temporary memory for the longest group, and for the pieces of all groups. */
    const int64_t longest = lr_listmode_longest_group(events);
    lr_cuda_list_sort *sort = &ordering.sort;
    if (status == LR_OK) status = check_order(&ordering, lr_cuda_list_sort_room(longest, &sort->room_bytes));
    if (status == LR_OK) {
        for (int k = 0; k < 2; k++) {
            sort->keys[k] = allocate(&ordering, longest * 4);
            sort->numbers[k] = allocate(&ordering, longest * 4);
        }
        for (int k = 0; k < NUM_ARRAYS; k++) ordering.gathered[k] = allocate(&ordering, longest * 4);
        sort->room = allocate(&ordering, sort->room_bytes);
        ordering.pieces = allocate(&ordering, order->first[groups] * (int64_t)sizeof(*ordering.pieces));
        sort->bits = 32;
        sort->stream = params->pass->stream;
        status = ordering.memory.failed ? LR_FAILED : LR_OK;
    }
    for (int64_t k = 0; status == LR_OK && k < groups; k++)
        status = order_group(&ordering, k / LR_LISTMODE_GROUPS, (int)(k % LR_LISTMODE_GROUPS));
    if (status == LR_OK) {
        status = check_order(&ordering, (int)cudaMemcpyAsync(order->list, ordering.pieces,
                                                             (size_t)order->first[groups] * sizeof(*order->list),
                                                             cudaMemcpyDefault, params->pass->stream));
    }
    const lr_status waited = check_order(&ordering, (int)cudaStreamSynchronize(params->pass->stream));
    lr_cuda_list_free(&ordering.memory);
    return status == LR_OK ? waited : status;
}
