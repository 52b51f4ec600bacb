/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/device.h"

#include "base/log.h"
#include "cuda_interop/lend.h"

lr_status lr_cuda_enter(int device, int *before, const lr_log *log)
{
    LR_TRY(lr_cuda_check((int)cudaGetDevice(before), "the current device", log));
    return *before != device ? lr_cuda_check((int)cudaSetDevice(device), "a CUDA device", log) : LR_OK;
}

lr_status lr_cuda_leave(int device, int before, lr_status status)
{
    if (before != device) cudaSetDevice(before);
    return status;
}

/* Adds the time of the oldest interval that has not been read. If the device has already finished the interval, the
 * function does not wait, because the interval's stream may no longer exist. */
static lr_status read_lap(struct lr_cuda_watch *watch)
{
    const cudaEvent_t *lap = watch->laps[watch->read++ % watch->most_laps];
    float milliseconds = 0;
    cudaError_t error = cudaEventElapsedTime(&milliseconds, lap[0], lap[1]);
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
        error = cudaEventSynchronize(lap[1]);
        error = error == cudaSuccess ? cudaEventElapsedTime(&milliseconds, lap[0], lap[1]) : error;
    }
    LR_TRY(lr_cuda_check((int)error, watch->what, watch->log));
    watch->last_s = 1e-3 * (double)milliseconds;
    watch->all_s += watch->last_s;
    return LR_OK;
}

lr_status lr_cuda_watch_mark(struct lr_cuda_watch *watch, int end, cudaStream_t stream)
{
    if (end && !watch->is_begun) return LR_OK;
    watch->is_begun = false; /* stays false if an error follows */
    if (watch->ended - watch->read == watch->most_laps) LR_TRY(read_lap(watch));
    cudaEvent_t *event = &watch->laps[watch->ended % watch->most_laps][end];
    cudaError_t error = *event == NULL ? cudaEventCreateWithFlags(event, cudaEventDefault) : cudaSuccess;
    error = error == cudaSuccess ? cudaEventRecord(*event, stream) : error;
    LR_TRY(lr_cuda_check((int)error, watch->what, watch->log));
    watch->is_begun = !end;
    watch->ended += end;
    return LR_OK;
}

lr_status lr_cuda_watch_read(struct lr_cuda_watch *watch, bool waits)
{
    lr_status status = LR_OK;
    while (watch->read < watch->ended) {
        const cudaEvent_t *lap = watch->laps[watch->read % watch->most_laps];
        float milliseconds = 0;
        if (!waits && cudaEventElapsedTime(&milliseconds, lap[0], lap[1]) != cudaSuccess) {
            (void)cudaGetLastError(); /* not an error: the device has not reached the interval's end */
            break;
        }
        const lr_status found = read_lap(watch);
        status = status == LR_OK ? found : status;
    }
    return status;
}

void lr_cuda_watch_finish(struct lr_cuda_watch *watch)
{
    for (int k = 0; k < 2 * LR_CUDA_MOST_LAPS; k++)
        if (watch->laps[k / 2][k % 2] != NULL) cudaEventDestroy(watch->laps[k / 2][k % 2]);
}
