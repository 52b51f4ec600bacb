/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/streams.h"

#include "base/log.h"
#include "cuda_interop/lend.h"

static cudaError_t create_event(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDisableTiming);
}

lr_status lr_cuda_streams_init(struct lr_cuda_streams *streams, const lr_log *log)
{
    *streams = (struct lr_cuda_streams){0};
    cudaError_t error = create_event(&streams->forked);
    for (int k = 0; error == cudaSuccess && k < LR_CUDA_STREAMS; k++) {
        error = cudaStreamCreateWithFlags(&streams->streams[k], cudaStreamNonBlocking);
        error = error == cudaSuccess ? create_event(&streams->joined[k]) : error;
    }
    return lr_cuda_check((int)error, "streams", log);
}

void lr_cuda_streams_finish(struct lr_cuda_streams *streams)
{
    for (int k = 0; k < LR_CUDA_STREAMS; k++) {
        if (streams->joined[k] != NULL) cudaEventDestroy(streams->joined[k]);
        if (streams->streams[k] != NULL) cudaStreamDestroy(streams->streams[k]);
    }
    if (streams->forked != NULL) cudaEventDestroy(streams->forked);
    *streams = (struct lr_cuda_streams){0};
}

lr_status lr_cuda_streams_fork(struct lr_cuda_streams *streams, const lr_log *log)
{
    cudaError_t error = cudaEventRecord(streams->forked, NULL);
    for (int k = 0; error == cudaSuccess && k < LR_CUDA_STREAMS; k++)
        error = cudaStreamWaitEvent(streams->streams[k], streams->forked, 0);
    return lr_cuda_check((int)error, "streams", log);
}

int lr_cuda_streams_next(struct lr_cuda_streams *streams, int count)
{
    return (int)(streams->next++ % (unsigned)count);
}

lr_status lr_cuda_streams_join(struct lr_cuda_streams *streams, const lr_log *log)
{
    cudaError_t error = cudaSuccess;
    for (int k = 0; error == cudaSuccess && k < LR_CUDA_STREAMS; k++) {
        error = cudaEventRecord(streams->joined[k], streams->streams[k]);
        error = error == cudaSuccess ? cudaStreamWaitEvent(NULL, streams->joined[k], 0) : error;
    }
    return lr_cuda_check((int)error, "streams", log);
}
