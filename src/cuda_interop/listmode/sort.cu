/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sorting by CUB's radix sort, which is stable. */
#include "cuda_interop/listmode/passes.h"

#include <cub/device/device_radix_sort.cuh>

namespace
{

constexpr unsigned group = 256;

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
    const unsigned groups = (unsigned)(((int64_t)gather->count + group - 1) / group);
    gather_events<<<groups, group, 0, static_cast<cudaStream_t>(gather->stream)>>>(*gather);
    return cudaGetLastError();
}
