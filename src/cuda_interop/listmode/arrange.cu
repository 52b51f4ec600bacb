/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Kernels that find the keys by which events are arranged (docs/method/listmode.md, "Arranging events"), and that draw
 * the lines of a sample (listmode/events.h). The device does the same operations as the host, in the same order and
 * without fused multiply-adds. Results therefore have the same bits. Tests also run these kernels on the processor. */
#include "cuda_interop/listmode/passes.h"
#include "listmode/solid_angle.h"

#include <cmath>
#include <cstring>

/* Returns the group of an event. Events without crystals are in the last group. */
__host__ __device__ inline uint32_t group_of_event(const lr_cuda_list_arranging &arranging, int k)
{
    const lr_cuda_list_events &events = arranging.events;
    if (events.crystals[0][k] < 0) return LR_CUDA_LIST_GROUPS - 1;
    const lr_cuda_list_hit &a = events.hits[events.crystals[0][k]];
    const lr_cuda_list_hit &b = events.hits[events.crystals[1][k]];
    const double run[3] = {fabs(b.mm[0] - a.mm[0]), fabs(b.mm[1] - a.mm[1]), fabs(b.mm[2] - a.mm[2])};
    int axis = run[1] > run[0] ? 1 : 0;
    axis = run[2] > run[axis] ? 2 : axis;
    const int of_a = arranging.has_kinds ? (int)a.kind : 0;
    const int of_b = arranging.has_kinds ? (int)b.kind : 0;
    const bool has_tof =
        of_a < events.num_kinds && of_b < events.num_kinds && events.sigma_mm[of_a * events.num_kinds + of_b] > 0;
    return (uint32_t)(2 * axis + (has_tof ? 1 : 0));
}

/* Sets the keys of a group's events: the coordinates of their centres along the axis. The keys are integers that sort
 * like these floats. */
[[maybe_unused]] static __global__ void __launch_bounds__(LR_CUDA_LIST_GROUP)
    find_centres(const __grid_constant__ lr_cuda_list_arranging arranging)
{
    const int64_t at = arranging.begin + (int64_t)blockIdx.x * LR_CUDA_LIST_GROUP + threadIdx.x;
    if (at >= arranging.end) return;
    const lr_cuda_list_events &events = arranging.events;
    const int k = arranging.order[at], axis = arranging.axis;
    const double *a = events.hits[events.crystals[0][k]].mm;
    const double *b = events.hits[events.crystals[1][k]].mm;
    const double along[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
    const double length = sqrt(along[0] * along[0] + along[1] * along[1] + along[2] * along[2]);
    const float centre = (float)(0.5 * (a[axis] + b[axis]) + (double)events.tof_mm[k] * along[axis] / length);
    uint32_t bits;
    memcpy(&bits, &centre, sizeof(bits));
    arranging.keys[at] = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

[[maybe_unused]] static __global__ void __launch_bounds__(LR_CUDA_LIST_GROUP)
    gather_events(const __grid_constant__ lr_cuda_list_gather gather)
{
    const int64_t k = (int64_t)blockIdx.x * LR_CUDA_LIST_GROUP + threadIdx.x;
    if (k < gather.count) {
        const int32_t from = gather.numbers[k];
        for (int array = 0; array < gather.num_arrays; array++) gather.to[array][k] = gather.from[array][from];
    }
}

/* --- lines of a sample --- */

__host__ __device__ inline bool has_bit(const uint32_t *words, int64_t bit)
{
    return (words[bit / 32] >> (bit % 32) & 1u) != 0;
}

/* Sets the two crystals of each line's LOR, and its solid angle. Both crystals are -1 if the LOR is not in coincidence
 * (lr_coincidence_allows). */
[[maybe_unused]] static __global__ void __launch_bounds__(LR_CUDA_LIST_GROUP)
    draw_lines(const __grid_constant__ lr_cuda_list_drawing drawing)
{
    const int64_t k = (int64_t)blockIdx.x * LR_CUDA_LIST_GROUP + threadIdx.x;
    if (k >= drawing.count) return;
    const int64_t line = drawing.first + drawing.step * k, last = drawing.num_lors - 1;
    double part = 0.0;
    if (drawing.stride > 1.0) { /* must give the same random number as the host (listmode/events.c) */
        uint64_t x = drawing.seed + 0x9e3779b97f4a7c15u * ((uint64_t)line + 1);
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        part = (double)((x ^ (x >> 31)) >> 11) * (1.0 / 9007199254740992.0);
    }
    const int64_t drawn = (int64_t)(((double)line + part) * drawing.stride), lor = drawn < last ? drawn : last;

    int64_t low = 0, high = drawing.num_pairs;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        (drawing.pairs[middle].begin <= lor ? low : high) = middle;
    }
    const lr_cuda_list_pair &pair = drawing.pairs[low];
    const int64_t within = lor - pair.begin;
    const int64_t a = within / pair.crystals_j, b = within - a * pair.crystals_j;

    const uint32_t *of_first = drawing.words + pair.words[0], *of_second = drawing.words + pair.words[1];
    bool is_in = true;
    if (pair.mask == LR_CUDA_LIST_MASK_FULL)
        is_in = has_bit(of_first, a * pair.crystals_j + b);
    else if (pair.mask != LR_CUDA_LIST_MASK_ALL)
        is_in = has_bit(of_first, a % pair.i[0] * pair.j[0] + b % pair.j[0]) &&
                has_bit(of_second, a / pair.i[0] * pair.j[1] + b / pair.j[0]);
    const int32_t of_i = pair.first[0] + (int32_t)a, of_j = pair.first[1] + (int32_t)b;
    drawing.crystals[0][k] = is_in ? of_i : -1;
    drawing.crystals[1][k] = is_in ? of_j : -1;
    if (drawing.weights != nullptr) {
        drawing.weights[k] =
            (float)(drawing.per_voxel * lr_listmode_face_product(pair.areas_mm2[0], pair.areas_mm2[1],
                                                                 drawing.hits[of_i].mm, drawing.hits[of_j].mm));
    }
}

/* --- launches --- */
#ifdef __CUDACC__

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

/* --- sorting: CUB's radix sort, which is stable --- */

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

#endif
