/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Launches that partition and sort events, and draw the lines of a sample (arrange.cuh). */
#include "cuda_interop/listmode/arrange.cuh"
#include "cuda_interop/listmode/passes.h"
#include "cuda_interop/overlap.cuh"

#include <cub/device/device_radix_sort.cuh>

static __global__ void __launch_bounds__(LR_CUDA_LIST_GROUP)
    find_groups(const __grid_constant__ lr_cuda_list_arranging arranging)
{
    __shared__ unsigned counts[LR_CUDA_LIST_GROUPS];
    const int64_t k = (int64_t)blockIdx.x * LR_CUDA_LIST_GROUP + threadIdx.x;
    if (threadIdx.x < LR_CUDA_LIST_GROUPS) counts[threadIdx.x] = 0;
    __syncthreads();
    if (k < arranging.count) {
        const uint32_t key = group_of_event(arranging, (int)k);
        arranging.keys[k] = key;
        arranging.numbers[k] = (int32_t)k;
        atomicAdd(&counts[key], 1u);
    }
    __syncthreads();
    if (threadIdx.x < LR_CUDA_LIST_GROUPS && counts[threadIdx.x] > 0)
        atomicAdd(&arranging.groups[threadIdx.x], counts[threadIdx.x]);
}

int lr_cuda_launch_list_groups(const lr_cuda_list_arranging *arranging)
{
    return launch_threads(find_groups, *arranging, arranging->count, arranging->stream);
}

int lr_cuda_launch_list_centres(const lr_cuda_list_arranging *arranging)
{
    return launch_threads(find_centres, *arranging, (int64_t)arranging->end - arranging->begin, arranging->stream);
}

int lr_cuda_launch_list_draw(const lr_cuda_list_drawing *drawing)
{
    return launch_threads(draw_lines, *drawing, drawing->count, drawing->stream);
}

int lr_cuda_launch_list_gather(const lr_cuda_list_gather *gather)
{
    return launch_threads(gather_events, *gather, gather->count, gather->stream);
}

/* --- sorting by CUB's radix sort, which is stable --- */

static cudaError_t sort_pairs(void *room, size_t &bytes, const lr_cuda_list_sort &sort)
{
    return cub::DeviceRadixSort::SortPairs(room, bytes, sort.keys[0], sort.keys[1], sort.numbers[0], sort.numbers[1],
                                           sort.count, 0, sort.bits, static_cast<cudaStream_t>(sort.stream));
}

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
