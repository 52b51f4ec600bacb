/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/watch.h"

#include "cuda_interop/lend.h"

static cudaEvent_t *lap_of(struct lr_cuda_watch *watch, int64_t lap)
{
    return watch->events[lap % LR_CUDA_LAPS];
}

static void record(cudaEvent_t *event, const lr_log *log)
{
    cudaError_t error = *event == NULL ? cudaEventCreate(event) : cudaSuccess;
    error = error == cudaSuccess ? cudaEventRecord(*event, NULL) : error;
    (void)lr_cuda_check((int)error, "a clock", log);
}

static void read_lap(struct lr_cuda_watch *watch, const lr_log *log)
{
    const cudaEvent_t *lap = lap_of(watch, watch->read++);
    float milliseconds = 0;
    cudaError_t error = cudaEventSynchronize(lap[1]);
    error = error == cudaSuccess ? cudaEventElapsedTime(&milliseconds, lap[0], lap[1]) : error;
    if (lr_cuda_check((int)error, "a clock", log) == LR_OK) watch->seconds += 1e-3 * (double)milliseconds;
}

void lr_cuda_watch_finish(struct lr_cuda_watch *watch)
{
    for (int k = 0; k < LR_CUDA_LAPS; k++) {
        for (int end = 0; end < 2; end++)
            if (watch->events[k][end] != NULL) cudaEventDestroy(watch->events[k][end]);
    }
    *watch = (struct lr_cuda_watch){0};
}

void lr_cuda_watch_begin(struct lr_cuda_watch *watch, const lr_log *log)
{
    if (watch->begun - watch->read == LR_CUDA_LAPS) read_lap(watch, log);
    record(&lap_of(watch, watch->begun++)[0], log);
}

void lr_cuda_watch_end(struct lr_cuda_watch *watch, const lr_log *log)
{
    record(&lap_of(watch, watch->begun - 1)[1], log);
}

double lr_cuda_watch_read(struct lr_cuda_watch *watch, const lr_log *log)
{
    while (watch->read < watch->begun) read_lap(watch, log);
    const double seconds = watch->seconds;
    watch->seconds = 0;
    return seconds;
}
