/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Keys by which events are ordered, for one thread. Written for the processor, too. */
#ifndef LR_CUDA_LISTMODE_ORDER_CUH
#define LR_CUDA_LISTMODE_ORDER_CUH

#include "cuda_interop/listmode/exact.cuh"

/* Slices beyond the last that a key can name count as that one. */
constexpr int list_last_key = 0x7fff, list_key_bits = 15;

/* Lines whose windows are larger come behind the others: a warp takes that of its largest. */
__host__ __device__ inline uint32_t window_class(const line_walk &walk)
{
    const float half = fmaxf(walk.half[0], walk.half[1]);
    return half <= 2.0f ? 0 : half <= 2.5f ? 1 : 2;
}

/* Slices that an event's line meets, and how large its windows are. */
__host__ __device__ inline uint32_t find_extent(const lr_cuda_list_ordering &ordering, int event,
                                                int32_t slices[2])
{
    const lr_cuda_list_frame &frame = ordering.pass.frames[ordering.axis];
    const bool has_tof = ordering.has_tof != 0;
    if (ordering.pass.exact.modules != nullptr) {
        return exact_extent(ordering.pass, frame, has_tof, event, slices);
    }
    const int32_t all[2] = {0, frame.slices};
    const line_walk walk = find_walk(ordering.pass, frame, has_tof, event, all);
    slices[0] = walk.slices[0];
    slices[1] = walk.slices[1];
    return window_class(walk);
}

__host__ __device__ inline void find_key(const lr_cuda_list_ordering &ordering, int event)
{
    int32_t slices[2];
    const uint32_t wide = find_extent(ordering, event, slices);
    const int first = slices[0] < list_last_key ? slices[0] : list_last_key;
    const int last = slices[1] < list_last_key ? slices[1] : list_last_key;
    ordering.keys[event] =
        wide << 2 * list_key_bits | (uint32_t)first << list_key_bits | (uint32_t)last;
    ordering.numbers[event] = event;
}

/* Of a piece whose keys are in order. */
__host__ __device__ inline void bound_piece(const lr_cuda_list_ordering &ordering, int piece)
{
    const lr_cuda_list_frame &frame = ordering.pass.frames[ordering.axis];
    const int64_t begin = (int64_t)piece * LR_CUDA_LIST_PIECE;
    lr_cuda_list_piece found = {{frame.slices, 0}, 0};
    for (int64_t k = begin; k < begin + LR_CUDA_LIST_PIECE && k < ordering.count; k++) {
        const int32_t first = (int32_t)(ordering.keys[k] >> list_key_bits & list_last_key);
        const int32_t last = (int32_t)(ordering.keys[k] & list_last_key);
        if (first < last || last == list_last_key) {
            found.slices[0] = first < found.slices[0] ? first : found.slices[0];
            found.slices[1] = last > found.slices[1] ? last : found.slices[1];
            found.visits += last - first;
        }
    }
    found.slices[1] = found.slices[1] == list_last_key ? frame.slices : found.slices[1];
    ordering.pieces[piece] = found;
}

#endif
