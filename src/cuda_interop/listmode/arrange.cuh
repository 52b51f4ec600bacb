/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Keys by which events are arranged (docs/method/listmode.md, "Arranging events"), for one thread: the host's
 * operations in the host's order, so that both have the same bits. Nothing here may be fused. Written
 * for the processor, too. */
#ifndef LR_CUDA_LISTMODE_ARRANGE_CUH
#define LR_CUDA_LISTMODE_ARRANGE_CUH

#include "cuda_interop/listmode/passes.h"

#include <cmath>
#include <cstring>

/* The group of an event, or the last one where it has no crystals. */
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

/* Numbers in the order of floats. */
__host__ __device__ inline uint32_t ascending_key(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

/* Key of the coordinate of an event's centre along the axis. */
__host__ __device__ inline uint32_t centre_key(const lr_cuda_list_arranging &arranging, int k)
{
    const lr_cuda_list_events &events = arranging.events;
    const double *a = events.hits[events.crystals[0][k]].mm;
    const double *b = events.hits[events.crystals[1][k]].mm;
    const double along[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
    const double length = sqrt(along[0] * along[0] + along[1] * along[1] + along[2] * along[2]);
    const int axis = arranging.axis;
    return ascending_key((float)(0.5 * (a[axis] + b[axis]) + (double)events.tof_mm[k] * along[axis] / length));
}

/* --- the LOR that a line of a sample is (listmode/events.h), for one thread: the host's numbers, to the bit. Nothing
 * here may be fused. Written for the processor, too. --- */

/* The number of draw() in listmode/events.c. */
__host__ __device__ inline double drawn_number(uint64_t seed, int64_t line)
{
    uint64_t x = seed + 0x9e3779b97f4a7c15u * ((uint64_t)line + 1);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (double)((x ^ (x >> 31)) >> 11) * (1.0 / 9007199254740992.0);
}

__host__ __device__ inline int64_t drawn_lor(const lr_cuda_list_drawing &drawing, int64_t k)
{
    const int64_t line = drawing.first + drawing.step * k, last = drawing.num_lors - 1;
    const double within = drawing.stride > 1.0 ? drawn_number(drawing.seed, line) : 0.0;
    const int64_t lor = (int64_t)(((double)line + within) * drawing.stride);
    return lor < last ? lor : last;
}

__host__ __device__ inline const lr_cuda_list_pair &pair_of_lor(const lr_cuda_list_drawing &drawing, int64_t lor)
{
    int64_t low = 0, high = drawing.num_pairs;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        (drawing.pairs[middle].begin <= lor ? low : high) = middle;
    }
    return drawing.pairs[low];
}

__host__ __device__ inline bool has_bit(const uint32_t *words, int64_t bit)
{
    return (words[bit / 32] >> (bit % 32) & 1u) != 0;
}

/* lr_coincidence_allows for crystals a and b of the pair's modules. */
__host__ __device__ inline bool pair_allows(const lr_cuda_list_drawing &drawing, const lr_cuda_list_pair &pair,
                                            int64_t a, int64_t b)
{
    const uint32_t *of_first = drawing.words + pair.words[0];
    if (pair.mask == LR_CUDA_LIST_MASK_ALL) return true;
    if (pair.mask == LR_CUDA_LIST_MASK_FULL) return has_bit(of_first, a * pair.crystals_j + b);
    const uint32_t *of_second = drawing.words + pair.words[1];
    return has_bit(of_first, a % pair.i[0] * pair.j[0] + b % pair.j[0]) &&
           has_bit(of_second, a / pair.i[0] * pair.j[1] + b / pair.j[0]);
}

__host__ __device__ inline void draw_line(const lr_cuda_list_drawing &drawing, int64_t k)
{
    const int64_t lor = drawn_lor(drawing, k);
    const lr_cuda_list_pair &pair = pair_of_lor(drawing, lor);
    const int64_t within = lor - pair.begin;
    const int64_t a = within / pair.crystals_j, b = within - a * pair.crystals_j;
    const bool is_in = pair_allows(drawing, pair, a, b);
    drawing.crystals[0][k] = is_in ? pair.first[0] + (int32_t)a : -1;
    drawing.crystals[1][k] = is_in ? pair.first[1] + (int32_t)b : -1;
}

#endif
