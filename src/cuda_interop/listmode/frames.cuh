/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Kernels before and after projections. They copy an image in the grid's order to frames and back, and turn the sums of
 * slabs into values. Tests also run them on the processor. */
#pragma once

#include "cuda_interop/listmode/project.cuh"

/* Fills the frames from the image. blockIdx.y is the number of the frame. */
static __global__ void __launch_bounds__(LR_CUDA_LIST_GROUP)
    fill_frames(const __grid_constant__ lr_cuda_list_framing framing)
{
    const lr_cuda_list_frame &frame = framing.frames[blockIdx.y];
    const int64_t k = (int64_t)blockIdx.x * LR_CUDA_LIST_GROUP + threadIdx.x;
    if (frame.has_events && k < lr_cuda_list_cells(&frame, frame.slices)) {
        const int64_t voxel = voxel_of(framing, frame, k);
        framing.numbers[frame.begin + k] = voxel >= 0 ? framing.image[voxel] : 0.0f;
    }
}

/* Sets each voxel to the sum of the frames. */
static __global__ void __launch_bounds__(LR_CUDA_LIST_GROUP)
    add_up_frames(const __grid_constant__ lr_cuda_list_framing framing)
{
    const int64_t k = (int64_t)blockIdx.x * LR_CUDA_LIST_GROUP + threadIdx.x;
    if (k >= (int64_t)framing.size[0] * framing.size[1] * framing.size[2]) return;
    const int64_t line = k / framing.size[0];
    const int at[3] = {(int)(k - line * framing.size[0]), (int)(line % framing.size[1]), (int)(line / framing.size[1])};
    double sum = 0;
    for (int axis = 0; axis < LR_CUDA_LIST_AXES; axis++) {
        const lr_cuda_list_frame &frame = framing.frames[axis];
        if (frame.has_events) {
            const int u = at[frame.across[0]] + frame.window[0] - 1;
            const int v = at[frame.across[1]] + frame.window[1] - 1;
            sum +=
                (double)framing.numbers[frame.begin + (int64_t)at[axis] * frame.plane + (int64_t)u * frame.pitch + v];
        }
    }
    framing.image[k] = (float)sum;
}

/* Adds up the sums of a chunk's slabs. blockIdx.y is the number of the chunk. */
static __global__ void __launch_bounds__(LR_CUDA_LIST_GROUP) put_values(const __grid_constant__ lr_cuda_list_pass pass)
{
    const lr_cuda_list_chunk &chunk = pass.chunks[blockIdx.y];
    for (int event = (int)(blockIdx.x * LR_CUDA_LIST_GROUP + threadIdx.x); event < chunk.count;
         event += (int)(gridDim.x * LR_CUDA_LIST_GROUP)) {
        const int64_t place = place_of(pass, chunk.begin + event);
        double sum = 0;
        for (int slab = 0; slab < chunk.slabs; slab++)
            sum += (double)pass.partial[chunk.partial + (int64_t)slab * chunk.count + event];
        if (place >= 0) pass.values[place] = (float)sum;
    }
}
