/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Kernels that begin while the one before in the stream still goes on: they prepare what does not
 * depend on it, and wait before they touch an image. Kernels that are launched so call
 *   cudaGridDependencySynchronize() before that, and
 *   cudaTriggerProgrammaticLaunchCompletion() where the next one may begin. */
#ifndef LR_CUDA_OVERLAP_CUH
#define LR_CUDA_OVERLAP_CUH

#include <cuda_runtime.h>

/* Devices of compute capability 9.0 and above. */
inline bool can_overlap()
{
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
               cudaSuccess &&
           major >= 9;
}

struct overlapping_launch {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};

    overlapping_launch(dim3 blocks, unsigned threads, void *stream)
    {
        config.gridDim = blocks;
        config.blockDim = dim3(threads);
        config.stream = static_cast<cudaStream_t>(stream);
        config.attrs = &attribute;
        config.numAttrs = can_overlap() ? 1 : 0;
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
    }
    overlapping_launch(const overlapping_launch &) = delete;
    overlapping_launch &operator=(const overlapping_launch &) = delete;
};

/* On devices and for architectures that cannot, there is nothing to wait for. */
__device__ inline void wait_for_last_kernel()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

__device__ inline void let_next_kernel_begin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

#endif
