/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Kernels that begin while the previous kernel of the stream still runs. Such a kernel first does work that does not
 * depend on the previous kernel, and waits before it reads or writes an image. Every kernel launched this way must call
 * wait_for_last_kernel, because later kernels of the stream rely on this wait. Kernels can read tables before this
 * call, because the host has already waited for the tables. */
#pragma once

#include <cuda_runtime.h>

#include <atomic>

/* Returns how many blocks of 256 threads are needed for a number of threads. */
inline unsigned groups_of(int64_t threads)
{
    return (unsigned)((threads + 255) / 256);
}

/* Starts a kernel on a stream with at least `threads` threads, in blocks of 256. */
template <class Pass> int launch_threads(void (*kernel)(Pass), const Pass &pass, int64_t threads, void *stream)
{
    kernel<<<groups_of(threads), 256, 0, static_cast<cudaStream_t>(stream)>>>(pass);
    return cudaGetLastError();
}

/* Returns true if the kernel's compiled version is for compute capability 9.0 or more. Only such a version can wait.
 * The answer for one kernel is valid for all kernels: they are compiled for the same devices, and all devices of a
 * machine are of the same kind. */
template <class Kernel> bool is_for_hopper(Kernel *kernel)
{
    const auto ask = [](Kernel *of) {
        cudaFuncAttributes attributes;
        const bool is_known = cudaFuncGetAttributes(&attributes, of) == cudaSuccess;
        if (!is_known) (void)cudaGetLastError(); /* later calls must not report this error */
        return is_known && attributes.ptxVersion >= 90;
    };
    static const bool is = ask(kernel);
    return is;
}

/* Lets a kernel use all shared memory of the current device. devices: one bit per device, set once the kernel may use
 * that device's memory. */
template <class Kernel> cudaError_t allow_shared_room(Kernel *kernel, int64_t bytes, std::atomic<uint64_t> &devices)
{
    int device = 0;
    cudaError_t error = cudaGetDevice(&device);
    const uint64_t bit = uint64_t(1) << (device % 64);
    if (error != cudaSuccess || (device < 64 && (devices & bit) != 0)) return error;
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error == cudaSuccess) devices |= bit;
    return error;
}

/* A launch of a kernel. Its stream is the default stream unless a function below sets another one. */
struct overlapping_launch {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};

    template <class Kernel> overlapping_launch(Kernel *kernel, dim3 blocks, unsigned threads)
    {
        config.gridDim = blocks;
        config.blockDim = dim3(threads);
        config.attrs = &attribute;
        config.numAttrs = is_for_hopper(kernel) ? 1 : 0;
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
    }

    /* Launches on a stream that runs next to others. Blocks do not begin before the previous kernel ends, because they
     * would only take space from blocks of other streams. stream: NULL = the default stream. */
    void go_beside(void *stream)
    {
        config.stream = static_cast<cudaStream_t>(stream);
        config.numAttrs = stream != nullptr ? 0 : config.numAttrs;
    }
    /* Launches a short kernel on a stream that runs next to other streams. Other work waits for this kernel, so it gets
     * the highest priority: its blocks start before blocks of the other streams. */
    void go_ahead_of(void *stream)
    {
        static const int first = [] {
            int last = 0, ahead = 0;
            (void)cudaDeviceGetStreamPriorityRange(&last, &ahead);
            return ahead;
        }();
        go_beside(stream);
        if (stream != nullptr) {
            attribute.id = cudaLaunchAttributePriority;
            attribute.val.priority = first;
            config.numAttrs = 1;
        }
    }
    overlapping_launch(const overlapping_launch &) = delete;
    overlapping_launch &operator=(const overlapping_launch &) = delete;
};

/* Waits for the previous kernel of the stream. Kernels compiled for less than compute capability 9.0 are never launched
 * to overlap, and need not wait. */
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
