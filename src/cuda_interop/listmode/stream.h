/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Events that do not fit in the device's memory: batches of them come from the host one after the other into
 * two slots in turn, on a stream of their own, while the place's stream works on the batch before. */
#ifndef LR_CUDA_LISTMODE_STREAM_H
#define LR_CUDA_LISTMODE_STREAM_H

#include "cuda_interop/listmode/plan.h"
#include "cuda_interop/listmode/tables.h"

enum { LR_CUDA_LIST_SLOTS = 2, LR_CUDA_LIST_ARRAYS = 4 };

struct lr_cuda_list_stream_params {
    const struct lr_listmode_events *events; /* of the host; outlive the stream */
    int64_t most_events;                     /* of a batch */
    cudaStream_t work;                       /* on which batches are worked on */
    const lr_log *log;
};

/* Zero is none. */
struct lr_cuda_list_stream {
    struct lr_cuda_list_stream_params params;
    cudaStream_t copies; /* owned, as the rest */
    struct lr_cuda_list_memory memory;
    int32_t *slots[LR_CUDA_LIST_SLOTS][LR_CUDA_LIST_ARRAYS];
    cudaEvent_t copied[LR_CUDA_LIST_SLOTS], done[LR_CUDA_LIST_SLOTS];
    const struct lr_cuda_list_batch *held[LR_CUDA_LIST_SLOTS]; /* NULL = nothing yet */
    void *pinned[LR_CUDA_LIST_ARRAYS];                         /* arrays of the host that are pinned */
    int next;                                                  /* slot */
};

/* Pins the events' memory, which lets copies go on beside the host; where the system refuses that, they are
 * slower. Finish it in any case. errors: LR_FAILED. */
lr_status lr_cuda_list_stream_init(struct lr_cuda_list_stream *stream, const struct lr_cuda_list_stream_params *params);
void lr_cuda_list_stream_finish(struct lr_cuda_list_stream *stream);

/* Has a batch copied, for which the work's stream waits, and names its arrays in *events. The host waits
 * until the batch before the last one is done: it is never more than two ahead.
 * After what is to be done with the batch, lr_cuda_list_stream_leave. */
lr_status lr_cuda_list_stream_enter(struct lr_cuda_list_stream *stream, const struct lr_cuda_list_batch *batch,
                                    lr_cuda_list_events *events);
lr_status lr_cuda_list_stream_leave(struct lr_cuda_list_stream *stream);

#endif
