/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/pieces.h"

#include "base/log.h"
#include "cuda_interop/lend.h"

/* Events of a piece, at most: page-locking more memory takes longer than it gains. */
enum { MOST_ROOM = 1 << 20 };

static bool make(struct lr_cuda_list_pieces *pieces, int k, int64_t room)
{
    void *memory;
    if (cudaEventCreateWithFlags(&pieces->list[k].sent, cudaEventDisableTiming) != cudaSuccess ||
        cudaMallocHost(&memory, (size_t)room * LR_CUDA_LIST_SENT * sizeof(int32_t)) != cudaSuccess) {
        (void)cudaGetLastError(); /* nothing that comes after has to do with it */
        return false;
    }
    for (int array = 0; array < LR_CUDA_LIST_SENT; array++)
        pieces->list[k].arrays[array] = (int32_t *)memory + array * room;
    return true;
}

bool lr_cuda_list_pieces_ensure(struct lr_cuda_list_pieces *pieces, int64_t most)
{
    const int64_t room = most < MOST_ROOM ? most : MOST_ROOM;
    bool has_all = true;
    if (pieces->room >= room) return true;
    lr_cuda_list_pieces_finish(pieces);
    for (int k = 0; k < LR_CUDA_LIST_PIECES && has_all; k++) has_all = make(pieces, k, room);
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

static lr_status send_piece(struct lr_cuda_list_pieces *pieces, const struct lr_cuda_list_sending *sending,
                            int64_t begin, int64_t end)
{
    const int k = pieces->next;
    int32_t *const *arrays = pieces->list[k].arrays;
    pieces->next = (k + 1) % LR_CUDA_LIST_PIECES;
    LR_TRY(check(sending, cudaEventSynchronize(pieces->list[k].sent)));
    const struct lr_listmode_piece piece = {.begin = begin,
                                            .end = end,
                                            .threads = sending->threads,
                                            .crystals = {arrays[0], arrays[1]},
                                            .tof_mm = (float *)(void *)arrays[2]};
    LR_TRY(lr_listmode_events_take(sending->events, &piece, sending->log));
    const size_t bytes = (size_t)(end - begin) * sizeof(int32_t);
    for (int array = 0; array < LR_CUDA_LIST_SENT; array++) {
        LR_TRY(check(sending, cudaMemcpyAsync(sending->to[array] + (begin - sending->begin), arrays[array], bytes,
                                              cudaMemcpyDefault, sending->stream)));
    }
    return check(sending, cudaEventRecord(pieces->list[k].sent, sending->stream));
}

lr_status lr_cuda_list_pieces_send(struct lr_cuda_list_pieces *pieces, const struct lr_cuda_list_sending *sending)
{
    for (int64_t begin = sending->begin; begin < sending->end; begin += pieces->room) {
        const int64_t left = sending->end - begin;
        LR_TRY(send_piece(pieces, sending, begin, begin + (left < pieces->room ? left : pieces->room)));
    }
    return LR_OK;
}
