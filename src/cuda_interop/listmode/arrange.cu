/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/arrange.cuh"

#include <cuda_runtime.h>

namespace
{

constexpr unsigned group = 256;
constexpr int num_groups = LR_CUDA_LIST_GROUPS;

__global__ void __launch_bounds__(group) find_groups(const __grid_constant__ lr_cuda_list_arranging arranging)
{
    __shared__ unsigned counts[num_groups];
    const int64_t k = (int64_t)blockIdx.x * group + threadIdx.x;
    if (threadIdx.x < num_groups) counts[threadIdx.x] = 0;
    __syncthreads();
    if (k < arranging.count) {
        const uint32_t key = group_of_event(arranging, (int)k);
        arranging.keys[k] = key;
        arranging.numbers[k] = (int32_t)k;
        atomicAdd(&counts[key], 1u);
    }
    __syncthreads();
    if (threadIdx.x < num_groups && counts[threadIdx.x] > 0)
        atomicAdd(&arranging.groups[threadIdx.x], counts[threadIdx.x]);
}

__global__ void __launch_bounds__(group) find_centres(const __grid_constant__ lr_cuda_list_arranging arranging)
{
    const int64_t k = arranging.begin + (int64_t)blockIdx.x * group + threadIdx.x;
    if (k < arranging.end) arranging.keys[k] = centre_key(arranging, arranging.order[k]);
}

unsigned groups_of(int64_t count)
{
    return (unsigned)((count + group - 1) / group);
}

} // namespace

int lr_cuda_launch_list_groups(const lr_cuda_list_arranging *arranging)
{
    find_groups<<<groups_of(arranging->count), group, 0, static_cast<cudaStream_t>(arranging->stream)>>>(*arranging);
    return cudaGetLastError();
}

int lr_cuda_launch_list_centres(const lr_cuda_list_arranging *arranging)
{
    find_centres<<<groups_of((int64_t)arranging->end - arranging->begin), group, 0,
                   static_cast<cudaStream_t>(arranging->stream)>>>(*arranging);
    return cudaGetLastError();
}
