/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Keys by which events are ordered, for one thread. Written for the processor, too. */
#ifndef LR_CUDA_LISTMODE_ORDER_CUH
#define LR_CUDA_LISTMODE_ORDER_CUH

#include "cuda_interop/listmode/walk.cuh"

/* Slices beyond the last that a key can name count as that one. */
constexpr int list_last_key = 0xffff;

__host__ __device__ inline void find_key(const lr_cuda_list_ordering &ordering, int event)
{
    const lr_cuda_list_frame &frame = ordering.pass.frames[ordering.axis];
    const int32_t all[2] = {0, frame.slices};
    const line_walk walk = find_walk(ordering.pass, frame, ordering.has_tof != 0, event, all);
    const int first = walk.slices[0] < list_last_key ? walk.slices[0] : list_last_key;
    const int last = walk.slices[1] < list_last_key ? walk.slices[1] : list_last_key;
    ordering.keys[event] = (uint32_t)first << 16 | (uint32_t)last;
    ordering.numbers[event] = event;
}

/* Of a piece whose keys are in order. */
__host__ __device__ inline void bound_piece(const lr_cuda_list_ordering &ordering, int piece)
{
    const lr_cuda_list_frame &frame = ordering.pass.frames[ordering.axis];
    const int64_t begin = (int64_t)piece * LR_CUDA_LIST_PIECE;
    int32_t slices[2] = {frame.slices, 0};
    for (int64_t k = begin; k < begin + LR_CUDA_LIST_PIECE && k < ordering.count; k++) {
        const int32_t first = (int32_t)(ordering.keys[k] >> 16);
        const int32_t last = (int32_t)(ordering.keys[k] & list_last_key);
        if (first < last || last == list_last_key) {
            slices[0] = first < slices[0] ? first : slices[0];
            slices[1] = last > slices[1] ? last : slices[1];
        }
    }
    ordering.slices[piece][0] = slices[0];
    ordering.slices[piece][1] = slices[1] == list_last_key ? frame.slices : slices[1];
}

#endif
