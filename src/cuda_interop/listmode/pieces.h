/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The way of events from the host to the device: by two pieces of page-locked memory in turn, of which processors
 * fill one while the other is on its way. */
#ifndef LR_CUDA_LISTMODE_PIECES_H
#define LR_CUDA_LISTMODE_PIECES_H

#include "listmode/backend.h"

#include <cuda_runtime_api.h>

enum { LR_CUDA_LIST_PIECES = 2, LR_CUDA_LIST_SENT = 3 }; /* arrays: crystals a and b, tof_mm */

/* Zero is valid: there are none yet. */
struct lr_cuda_list_pieces {
    int64_t room; /* events of a piece */
    struct {
        int32_t *arrays[LR_CUDA_LIST_SENT]; /* [room] of one allocation, owned */
        cudaEvent_t sent;
    } list[LR_CUDA_LIST_PIECES];
    int next;
};

/* Of `most` events in all, that are to go: makes larger pieces where these are smaller than pieces may be. False:
 * no memory. */
bool lr_cuda_list_pieces_ensure(struct lr_cuda_list_pieces *pieces, int64_t most);
void lr_cuda_list_pieces_finish(struct lr_cuda_list_pieces *pieces);

/* Where events begin .. end - 1 of the caller's order go. */
struct lr_cuda_list_sending {
    const struct lr_listmode_events *events;
    int64_t begin, end;
    int32_t *to[LR_CUDA_LIST_SENT]; /* of the device, from `begin` on */
    cudaStream_t stream;
    int threads;
    const lr_log *log;
};

/* Checks them on the way; the last ones may still be under way when it returns.
 * errors: LR_BAD_INPUT for an event, LR_FAILED. */
lr_status lr_cuda_list_pieces_send(struct lr_cuda_list_pieces *pieces, const struct lr_cuda_list_sending *sending);

/* Those that a backend of this kind keeps for the events of its sensitivity; NULL = it is of another kind. */
struct lr_cuda_list_pieces *lr_cuda_list_pieces_of(const struct lr_backend *backend);

#endif
