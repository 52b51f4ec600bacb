/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/tables.h"

#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/lend.h"
#include "device/place.h"
#include "listmode/tube.h"

#include <stdlib.h>

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
    for (int k = 0; k < memory->count; k++) cudaFree(memory->blocks[k]);
    *memory = (struct lr_cuda_list_memory){.stream = memory->stream, .log = memory->log};
}

/* --- tables of the host, in the layout that passes read --- */

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
        }
    }

    const lr_status status = lr_cuda_check((int)cudaStreamSynchronize(memory->stream), what, params->log);
    free(hits);
    free(table);
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
    const int64_t device = params->place->memory_bytes;
    const int64_t all =
        params->max_memory_bytes > 0 ? params->max_memory_bytes : (device > 0 ? device : lr_physical_memory()) / 2;
    return all > points ? all - points : 0;
}

/* The sums of a launch take an eighth of the memory, but at most MOST_SUMS sums. */
enum { SHARE_OF_SUMS = 8, MOST_SUMS = 1 << 26 };

struct lr_cuda_list_shares lr_cuda_list_share_memory(const struct lr_listmode_backend_params *params, int64_t numbers)
{
    const int64_t size = (int64_t)sizeof(float), all = lr_cuda_list_budget(params);
    const int64_t bytes = numbers < all / size ? all - numbers * size : 0;
    const int64_t sums = bytes / SHARE_OF_SUMS / size;
    const int64_t most_sums = sums < 1 ? 1 : sums < MOST_SUMS ? sums : MOST_SUMS;
    return (struct lr_cuda_list_shares){most_sums, bytes - most_sums * size};
}

/* Most events of a piece. With larger pieces, page-locking takes longer than the transfer gains. */
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
