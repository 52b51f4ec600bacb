/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/passes.h"

#include "base/log.h"
#include "cuda_interop/lend.h"

#include <cuda_runtime_api.h>

enum { WARP = 32 };

static _Thread_local lr_cuda_kernel last;

void lr_cuda_note_kernel(const void *function, int threads, int64_t shared_bytes)
{
    last = (lr_cuda_kernel){function, threads, shared_bytes};
}

lr_status lr_cuda_find_attributes(lr_direct_attributes *attributes, const lr_log *log)
{
    const lr_cuda_kernel kernel = last;
    struct cudaFuncAttributes found;
    int device = 0, most_threads = 0;
    if (kernel.function == NULL)
        return lr_error(log, LR_USAGE, "no projection has run yet whose kernel could be asked");
    cudaError_t error = cudaFuncGetAttributes(&found, kernel.function);
    if (error == cudaSuccess) {
        *attributes = (lr_direct_attributes){
            .registers = found.numRegs,
            .threads = kernel.threads,
            .constant_bytes = (int64_t)found.constSizeBytes,
            .local_bytes = (int64_t)found.localSizeBytes,
            .shared_bytes = (int64_t)found.sharedSizeBytes + kernel.shared_bytes,
        };
        error = cudaGetDevice(&device);
    }
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    if (error == cudaSuccess) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&attributes->blocks, kernel.function, kernel.threads,
                                                              (size_t)kernel.shared_bytes);
    }
    if (error == cudaSuccess && most_threads > 0) {
        const int warps = (kernel.threads + WARP - 1) / WARP;
        attributes->occupancy = (double)(attributes->blocks * warps) / (most_threads / WARP);
    }
    return lr_cuda_check((int)error, "a kernel's attributes", log);
}
