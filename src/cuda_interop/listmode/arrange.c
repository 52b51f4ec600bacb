/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Partition and sort of events on the device, range by range. The order is the same as the host's (listmode/events.c).
 * Events stay on the device if its memory can hold all of them; otherwise each range is copied back to the host. */
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "cuda_interop/device.h"
#include "cuda_interop/lend.h"
#include "cuda_interop/listmode/tables.h"
#include "device/place.h"
#include "listmode/solid_angle.h"
#include "model/scanner/coincidence.h"

#include <stdlib.h>
#include <string.h>

/* --- lines of a sample (listmode/events.h), drawn on the device --- */

_Static_assert((int)LR_CUDA_LIST_MASK_ALL == (int)LR_MASK_ALL && (int)LR_CUDA_LIST_MASK_FULL == (int)LR_MASK_FULL,
               "kinds of masks have one number on the host and on the device");

/* Copies the tables from which LORs are drawn to the device, and waits. errors: LR_FAILED if memory runs out. */
static lr_status drawing_open(const struct lr_listmode_sample *sample, struct lr_cuda_list_memory *memory,
                              lr_cuda_list_drawing *drawing)
{
    static const char what[] = "pairs of modules";
    const lr_lors *lors = sample->lors;
    const lr_scanner *scanner = lors->scanner;
    lr_cuda_list_pair *pairs = lr_alloc(lors->num_pairs, sizeof(*pairs), what, memory->log);
    if (pairs == NULL) return LR_FAILED;
    for (int64_t k = 0; k < lors->num_pairs; k++) {
        const struct lr_pair_mask *mask = &lors->masks->pairs[k];
        const int i = lors->pairs[k][0], j = lors->pairs[k][1];
        const int *of_i = scanner->modules[i].crystals, *of_j = scanner->modules[j].crystals;
        pairs[k] = (lr_cuda_list_pair){.begin = lors->offsets[k],
                                       .first = {scanner->first_crystal[i], scanner->first_crystal[j]},
                                       .i = {of_i[0], of_i[1]},
                                       .j = {of_j[0], of_j[1]},
                                       .crystals_j = scanner->first_crystal[j + 1] - scanner->first_crystal[j],
                                       .mask = mask->kind,
                                       .words = {mask->offset_a, mask->offset_b}};
        if (sample->faces == NULL) continue;
        memcpy(pairs[k].areas_mm2[0], sample->faces->areas_mm2[scanner->first_crystal[i]], sizeof(double[3]));
        memcpy(pairs[k].areas_mm2[1], sample->faces->areas_mm2[scanner->first_crystal[j]], sizeof(double[3]));
    }
    const int64_t pairs_bytes = lors->num_pairs * (int64_t)sizeof(*pairs);
    const int64_t words_bytes = lors->masks->num_words * (int64_t)sizeof(uint32_t);
    *drawing = (lr_cuda_list_drawing){.pairs = lr_cuda_list_allocate(memory, what, pairs, pairs_bytes),
                                      .words = lr_cuda_list_allocate(memory, what, lors->masks->words, words_bytes),
                                      .num_pairs = lors->num_pairs,
                                      .num_lors = lors->count,
                                      .stride = sample->stride,
                                      .seed = sample->seed,
                                      .first = sample->first,
                                      .step = sample->step,
                                      .per_voxel = sample->faces != NULL ? sample->faces->per_voxel : 0.0,
                                      .stream = memory->stream};
    const lr_status status = lr_cuda_check((int)cudaStreamSynchronize(memory->stream), what, memory->log);
    free(pairs);
    return memory->failed ? LR_FAILED : status;
}

/* --- arranging --- */

/* Bytes that an event takes while events are arranged: three input arrays, three output arrays, two keys, two
 * numbers. */
enum { EVENT_BYTES = 2 * 3 * 4 + 2 * 4 + 2 * 4, NUM_ARRAYS = 3, GROUP_BITS = 3 };

/* The largest size of the tables of LORs, bytes. Larger tables would take too long, because the tables are made again
 * for each batch of lines. */
enum { MOST_DRAWING_BYTES = 64 << 20 };

/* Bytes that an event takes while it stays on the device. */
enum { HELD_ARRAYS = 4, HELD_BYTES = HELD_ARRAYS * 4 };

_Static_assert((int)LR_CUDA_LIST_GROUPS == (int)LR_LISTMODE_GROUPS + 1, "the device has one group more");
_Static_assert(sizeof(lr_cuda_list_path) == 128, "a cache line");

/* The largest number of ranges whose times have not been read yet. */
enum { MOST_LAPS = 8 };

/* The events on a device: a struct lr_listmode_held with its memory. */
struct held {
    struct lr_listmode_held base; /* must be the first member */
    struct lr_cuda_list_memory memory;
    int device;
};

struct arranging {
    const struct lr_listmode_backend_params *params;
    struct lr_listmode_events *events;
    cudaStream_t stream;
    struct lr_cuda_list_memory memory;
    lr_cuda_list_arranging pass;
    lr_cuda_list_sort sort;
    lr_cuda_list_drawing drawing;            /* used if events are drawn as a sample */
    struct lr_cuda_list_pieces own, *pieces; /* own: used if no backend has pieces to lend; pieces: the pieces in use */
    int32_t *from[NUM_ARRAYS], *to[NUM_ARRAYS];
    struct held *held; /* events that stay on the device; NULL = events are copied back to the host */
    struct lr_cuda_watch partition, sorting;
};

static lr_status check(const struct arranging *at, int error)
{
    return lr_cuda_check(error, "arranging events", at->params->log);
}

static lr_status copy(const struct arranging *at, void *to, const void *from, int64_t bytes)
{
    return check(at, (int)cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, at->stream));
}

static lr_status wait(const struct arranging *at)
{
    return check(at, (int)cudaStreamSynchronize(at->stream));
}

/* --- events that stay on the device --- */

static lr_status fetch_held(const struct lr_listmode_held *base, struct lr_listmode_events *events, const lr_log *log)
{
    const struct held *held = (const struct held *)base;
    void *const arrays[HELD_ARRAYS] = {events->crystals[0], events->crystals[1], events->tof_mm, events->number};
    const size_t bytes = (size_t)events->layout.count * sizeof(int32_t);
    int before;
    LR_TRY(lr_cuda_enter(held->device, &before, log));
    cudaError_t error = cudaSuccess;
    for (int k = 0; k < HELD_ARRAYS && error == cudaSuccess; k++)
        error = cudaMemcpyAsync(arrays[k], base->arrays[k], bytes, cudaMemcpyDefault, held->memory.stream);
    const cudaError_t waited = cudaStreamSynchronize(held->memory.stream);
    const lr_status status =
        lr_cuda_leave(held->device, before, lr_cuda_check((int)(error == cudaSuccess ? waited : error), "events", log));
    events->is_arranged = status == LR_OK;
    return status;
}

static void destroy_held(struct lr_listmode_held *base)
{
    struct held *held = (struct held *)base;
    int before = held->device;
    (void)lr_cuda_enter(held->device, &before, NULL);
    lr_cuda_list_free(&held->memory);
    (void)lr_cuda_leave(held->device, before, LR_OK);
    free(held);
}

/* Allocates memory on the device for all events. bytes: memory for arranging. Besides this memory, enough must be left
 * for the image and its sums. Ordering the events later needs less memory than arranging them. Returns NULL if the
 * device has too little memory. */
static struct held *open_held(const struct arranging *at, int64_t bytes)
{
    const struct lr_listmode_backend_params *params = at->params;
    const struct lr_cuda_list_shares shares =
        lr_cuda_list_share_memory(params, lr_cuda_list_most_numbers(params->model));
    const int64_t count = at->events->layout.count;
    /* Only the fastest variant can read events that were arranged on the device. */
    if (params->variant != LR_LISTMODE_FASTEST || params->shares_events ||
        bytes + count * (int64_t)HELD_BYTES > shares.for_events)
        return NULL;

    struct held *held = lr_alloc(1, sizeof(*held), "events on a device", NULL);
    if (held == NULL) return NULL;
    *held = (struct held){.base = {.fetch = fetch_held, .destroy = destroy_held},
                          .memory = {.stream = at->stream},
                          .device = params->device};
    for (int k = 0; k < HELD_ARRAYS; k++)
        held->base.arrays[k] = lr_cuda_list_allocate(&held->memory, "events", NULL, count * 4);
    if (!held->memory.failed) return held;
    destroy_held(&held->base);
    return NULL;
}

/* --- memory --- */

static void *allocate(struct arranging *at, const void *from, int64_t bytes)
{
    return lr_cuda_list_allocate(&at->memory, "arranging events", from, bytes);
}

/* Allocates memory for ranges of up to `longest` events, and copies the tables that arranging reads. */
static lr_status open_arranging(struct arranging *at, int64_t longest)
{
    const struct lr_listmode_events *events = at->events;
    if (events->sample != NULL)
        LR_TRY(drawing_open(events->sample, &at->memory, &at->drawing));
    else
        LR_TRY(lr_cuda_list_pieces_ensure(at->pieces, longest) ? LR_OK : LR_FAILED);
    for (int k = 0; k < NUM_ARRAYS; k++) {
        at->from[k] = allocate(at, NULL, longest * 4);
        if (at->held == NULL) at->to[k] = allocate(at, NULL, longest * 4);
    }
    for (int k = 0; k < 2; k++) {
        at->sort.keys[k] = allocate(at, NULL, longest * 4);
        at->sort.numbers[k] = allocate(at, NULL, longest * 4);
    }
    at->sort.room = allocate(at, NULL, at->sort.room_bytes);
    if (at->memory.failed) return LR_FAILED;

    const int64_t kinds = (int64_t)events->num_kinds * events->num_kinds;
    lr_cuda_list_hit *hits = lr_cuda_list_hits(events, at->params->log);
    if (hits == NULL) return LR_FAILED;
    at->pass.events = (lr_cuda_list_events){.crystals = {at->from[0], at->from[1]},
                                            .tof_mm = (const float *)(void *)at->from[2],
                                            .hits = allocate(at, hits, events->num_crystals * (int64_t)sizeof(*hits)),
                                            .sigma_mm = allocate(at, events->sigma_mm, kinds * (int64_t)sizeof(double)),
                                            .num_kinds = events->num_kinds};
    at->pass.has_kinds = events->kind_of != NULL;
    at->pass.groups = allocate(at, NULL, LR_CUDA_LIST_GROUPS * (int64_t)sizeof(unsigned));
    at->pass.stream = at->stream;
    at->sort.stream = at->stream;
    const lr_status status = wait(at);
    free(hits);
    return at->memory.failed ? LR_FAILED : status;
}

/* --- a range --- */

/* Sorts a group of the partitioned events, from numbers[1] to numbers[0]. */
static lr_status sort_group(struct arranging *at, int64_t r, int g)
{
    const int64_t *groups = at->events->groups[r];
    const int64_t begin = groups[g] - groups[0], end = groups[g + 1] - groups[0];
    if (begin == end) return LR_OK;
    if (!lr_listmode_group_has_tof(g)) {
        return copy(at, at->sort.numbers[0] + begin, at->sort.numbers[1] + begin,
                    (end - begin) * (int64_t)sizeof(int32_t));
    }
    lr_cuda_list_arranging pass = at->pass;
    pass.order = at->sort.numbers[1];
    pass.begin = (int32_t)begin;
    pass.end = (int32_t)end;
    pass.axis = lr_listmode_group_axis(g);
    LR_TRY(check(at, lr_cuda_launch_list_centres(&pass)));
    lr_cuda_list_sort sort = at->sort;
    sort.keys[0] += begin;
    sort.keys[1] += begin;
    sort.numbers[0] = at->sort.numbers[1] + begin;
    sort.numbers[1] = at->sort.numbers[0] + begin;
    sort.count = (int32_t)(end - begin);
    sort.bits = 32;
    return check(at, lr_cuda_launch_list_sort(&sort));
}

static lr_status arrange_range(struct arranging *at, int64_t r)
{
    const struct lr_listmode_backend_params *params = at->params;
    const struct lr_listmode_events *events = at->events;
    const int64_t first = events->offsets[r], end = events->offsets[r + 1];
    at->sort.count = (int32_t)(end - first);
    if (at->sort.count == 0) {
        for (int g = 0; g <= LR_LISTMODE_GROUPS; g++) at->events->groups[r][g] = first;
        return LR_OK;
    }

    /* Draws the lines of the range on the device, or copies its events there. */
    if (events->sample != NULL) {
        lr_cuda_list_drawing drawing = at->drawing;
        drawing.first += drawing.step * first;
        drawing.count = at->sort.count;
        drawing.crystals[0] = at->from[0];
        drawing.crystals[1] = at->from[1];
        drawing.hits = at->pass.events.hits;
        drawing.weights = events->sample->weights != NULL ? events->sample->weights + first : NULL;
        LR_TRY(check(at, (int)cudaMemsetAsync(at->from[2], 0, (size_t)at->sort.count * sizeof(float), at->stream)));
        LR_TRY(check(at, lr_cuda_launch_list_draw(&drawing)));
    } else {
        LR_TRY(lr_cuda_list_pieces_send(
            at->pieces,
            &(struct lr_cuda_list_sending){.events = events,
                                           .begin = first,
                                           .end = end,
                                           .to = {at->from[0], at->from[1], at->from[2]},
                                           .stream = at->stream,
                                           .threads = params->threads > 0 ? params->threads : lr_num_processors(),
                                           .log = params->log}));
    }

    /* Groups the events: writes their order to sort.numbers[1], and the first index of each group to `groups`. */
    unsigned counts[LR_CUDA_LIST_GROUPS];
    int64_t *groups = events->groups[r];
    LR_TRY(check(at, (int)cudaMemsetAsync(at->pass.groups, 0, sizeof(counts), at->stream)));
    LR_TRY(lr_cuda_watch_mark(&at->partition, 0, at->stream));
    at->pass.keys = at->sort.keys[0];
    at->pass.numbers = at->sort.numbers[0];
    at->pass.count = at->sort.count;
    at->sort.bits = GROUP_BITS;
    LR_TRY(check(at, lr_cuda_launch_list_groups(&at->pass)));
    LR_TRY(check(at, lr_cuda_launch_list_sort(&at->sort)));
    LR_TRY(lr_cuda_watch_mark(&at->partition, 1, at->stream));
    LR_TRY(copy(at, counts, at->pass.groups, sizeof(counts)));
    LR_TRY(wait(at));
    groups[0] = first;
    for (int g = 0; g < LR_LISTMODE_GROUPS; g++) groups[g + 1] = groups[g] + (int64_t)counts[g];
    const int32_t num_kept = (int32_t)(groups[LR_LISTMODE_GROUPS] - first); /* events whose LOR is in coincidence; they
                                                                               come first */

    LR_TRY(lr_cuda_watch_mark(&at->sorting, 0, at->stream));
    for (int g = 0; g < LR_LISTMODE_GROUPS; g++) LR_TRY(sort_group(at, r, g));
    LR_TRY(lr_cuda_watch_mark(&at->sorting, 1, at->stream));

    /* Puts the arrays in the order of these numbers. The results stay on the device, or are copied to the host. */
    const int64_t bytes = num_kept * (int64_t)sizeof(int32_t);
    lr_cuda_list_gather gather = {.numbers = at->sort.numbers[0],
                                  .from = {at->from[0], at->from[1], at->from[2]},
                                  .to = {at->to[0], at->to[1], at->to[2]},
                                  .num_arrays = NUM_ARRAYS,
                                  .count = num_kept,
                                  .stream = at->stream};
    int32_t *numbers = at->held == NULL ? events->number + first : NULL;
    if (at->held != NULL) {
        void *const *arrays = at->held->base.arrays;
        for (int k = 0; k < NUM_ARRAYS; k++) gather.to[k] = (int32_t *)arrays[k] + first;
        numbers = (int32_t *)arrays[NUM_ARRAYS] + first;
    }
    LR_TRY(num_kept == 0 ? LR_OK : check(at, lr_cuda_launch_list_gather(&gather)));
    if (at->held == NULL) {
        LR_TRY(copy(at, events->crystals[0] + first, at->to[0], bytes));
        LR_TRY(copy(at, events->crystals[1] + first, at->to[1], bytes));
        LR_TRY(copy(at, events->tof_mm + first, at->to[2], bytes));
    }
    LR_TRY(copy(at, numbers, at->sort.numbers[0], bytes));
    return wait(at);
}

lr_status lr_listmode_cuda_arrange(struct lr_listmode_events *events, const struct lr_listmode_backend_params *params)
{
    struct arranging at = {.params = params, .events = events, .stream = params->place->cuda_stream};
    at.pieces = params->stands_for != NULL ? lr_cuda_list_pieces_of(params->stands_for) : NULL;
    at.pieces = at.pieces != NULL ? at.pieces : &at.own;
    int64_t longest = 0, tables = 0; /* longest: events of the longest range; tables: bytes of the tables of LORs on the
                                        device */
    for (int64_t r = 0; r < events->layout.num_pairs; r++) {
        const int64_t count = events->offsets[r + 1] - events->offsets[r];
        longest = count > longest ? count : longest;
    }
    at.partition = at.sorting =
        (struct lr_cuda_watch){.what = "arranging events", .log = params->log, .most_laps = MOST_LAPS};
    at.memory.stream = at.stream; /* has no log, because the host arranges the events if memory is short */
    if (events->sample != NULL) {
        const lr_lors *lors = events->sample->lors;
        tables =
            lors->num_pairs * (int64_t)sizeof(lr_cuda_list_pair) + lors->masks->num_words * (int64_t)sizeof(uint32_t);
    }

    const int device = params->device;
    int before;
    LR_TRY(lr_cuda_enter(device, &before, params->log));
    lr_status status = check(&at, lr_cuda_list_sort_room(longest, &at.sort.room_bytes));
    const int64_t bytes = (longest * EVENT_BYTES + at.sort.room_bytes) + tables;
    if (status == LR_OK && tables <= MOST_DRAWING_BYTES && bytes <= lr_cuda_list_budget(params)) {
        at.held = open_held(&at, bytes);
        /* A sample that cannot stay on the device is not arranged here, because the host draws its lines instead. */
        const bool may_be_arranged = at.held != NULL || events->sample == NULL;
        if (may_be_arranged && open_arranging(&at, longest) == LR_OK) {
            if (at.held == NULL) status = lr_listmode_events_make_arrays(events, params->log);
            for (int64_t r = 0; status == LR_OK && r < events->layout.num_pairs; r++) status = arrange_range(&at, r);
            if (status == LR_OK) status = lr_cuda_watch_read(&at.partition, true);
            if (status == LR_OK) status = lr_cuda_watch_read(&at.sorting, true);
            if (status == LR_OK) {
                events->partition_seconds += at.partition.all_s;
                events->sort_seconds += at.sorting.all_s;
                events->is_arranged = at.held == NULL;
                events->held = at.held != NULL ? &at.held->base : NULL;
                at.held = NULL;
            }
        }
        (void)cudaStreamSynchronize(at.stream);
        lr_cuda_list_pieces_finish(&at.own);
        lr_cuda_list_free(&at.memory);
        lr_cuda_watch_finish(&at.partition);
        lr_cuda_watch_finish(&at.sorting);
        if (at.held != NULL) destroy_held(&at.held->base);
    }
    return lr_cuda_leave(device, before, status);
}
