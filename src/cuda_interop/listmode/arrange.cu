/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Partition and sort of events, and lines of a sample: kernels over arrange.cuh, and their launches. */
#include "cuda_interop/listmode/arrange.cuh"
#include "cuda_interop/listmode/passes.h"

#include <cub/device/device_radix_sort.cuh>
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

namespace
{

__global__ void __launch_bounds__(group) draw_lines(const __grid_constant__ lr_cuda_list_drawing drawing)
{
    const int64_t k = (int64_t)blockIdx.x * group + threadIdx.x;
    if (k < drawing.count) draw_line(drawing, k);
}

} // namespace

int lr_cuda_launch_list_draw(const lr_cuda_list_drawing *drawing)
{
    draw_lines<<<groups_of(drawing->count), group, 0, static_cast<cudaStream_t>(drawing->stream)>>>(*drawing);
    return cudaGetLastError();
}

/* --- sorting by CUB's radix sort, which is stable --- */

namespace
{

__global__ void __launch_bounds__(group) gather_events(const __grid_constant__ lr_cuda_list_gather gather)
{
    const int64_t k = (int64_t)blockIdx.x * group + threadIdx.x;
    if (k < gather.count) {
        const int32_t from = gather.numbers[k];
        for (int array = 0; array < gather.num_arrays; array++) gather.to[array][k] = gather.from[array][from];
    }
}

cudaError_t sort_pairs(void *room, size_t &bytes, const lr_cuda_list_sort &sort)
{
    return cub::DeviceRadixSort::SortPairs(room, bytes, sort.keys[0], sort.keys[1], sort.numbers[0], sort.numbers[1],
                                           sort.count, 0, sort.bits, static_cast<cudaStream_t>(sort.stream));
}

} // namespace

int lr_cuda_list_sort_room(int64_t most, int64_t *bytes)
{
    const lr_cuda_list_sort sort = {{}, {}, (int32_t)most, 32, nullptr, 0, nullptr};
    size_t room = 0;
    const cudaError_t error = sort_pairs(nullptr, room, sort);
    *bytes = (int64_t)room;
    return error;
}

int lr_cuda_launch_list_sort(const lr_cuda_list_sort *sort)
{
    size_t bytes = (size_t)sort->room_bytes;
    return sort_pairs(sort->room, bytes, *sort);
}

int lr_cuda_launch_list_gather(const lr_cuda_list_gather *gather)
{
    gather_events<<<groups_of(gather->count), group, 0, static_cast<cudaStream_t>(gather->stream)>>>(*gather);
    return cudaGetLastError();
}
