/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Streams of CUDA for passes that need not wait for each other: between fork and join they are
 * dealt out in turn, and to the default stream all that lies between is one piece of work. */
#ifndef LR_CUDA_STREAMS_H
#define LR_CUDA_STREAMS_H

#include <lr/log.h>

#include <cuda_runtime_api.h>

enum { LR_CUDA_STREAMS = 8 };

/* Zero is none. */
struct lr_cuda_streams {
    cudaStream_t streams[LR_CUDA_STREAMS]; /* owned, as the events are */
    cudaEvent_t forked, joined[LR_CUDA_STREAMS];
    unsigned next;
};

/* errors: LR_FAILED, here and below. */
lr_status lr_cuda_streams_init(struct lr_cuda_streams *streams, const lr_log *log);
void lr_cuda_streams_finish(struct lr_cuda_streams *streams);

/* What the streams are told comes after all that the default stream has been told. */
lr_status lr_cuda_streams_fork(struct lr_cuda_streams *streams, const lr_log *log);

/* The number of the stream whose turn it is, of the first `count`. */
int lr_cuda_streams_next(struct lr_cuda_streams *streams, int count);

/* What the default stream is told comes after all that the streams have been told. */
lr_status lr_cuda_streams_join(struct lr_cuda_streams *streams, const lr_log *log);

#endif
