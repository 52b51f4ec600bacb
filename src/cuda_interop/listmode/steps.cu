/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The paper's steps. Each thread has a line. Either all threads of a block go through the slices together, with the
 * slices in shared memory, or each thread reads the image from global memory by itself. */
#include "cuda_interop/listmode/steps.cuh"

#include <cuda_runtime.h>

namespace
{

extern __shared__ float tile_numbers[];

/* --- tiles --- */

struct grid_tile {
    const lr_cuda_list_step &step;
    const lr_cuda_list_frame &frame;
    int slice;

    __device__ float load(int row, int column) const
    {
        const int64_t voxel = voxel_at(step, frame, slice, row, column);
        return voxel >= 0 ? step.image[voxel] : 0.0f;
    }
    __device__ void add(int row, int column, float number) const
    {
        const int64_t voxel = voxel_at(step, frame, slice, row, column);
        if (voxel >= 0) atomicAdd(step.image + voxel, number);
    }
};

struct shared_tile {
    const lr_cuda_list_frame &frame;
    tile_span span;

    __device__ float load(int row, int column) const
    {
        const int at = span.find(frame, row, column);
        return at >= 0 ? tile_numbers[at] : 0.0f;
    }
    __device__ void add(int row, int column, float number) const
    {
        const int at = span.find(frame, row, column);
        if (at >= 0) atomicAdd(tile_numbers + at, number);
    }
};

/* --- kernels --- */

/* All lines of a block go through the slices together, with the slices in shared memory. In a back-projection, a slice
 * is added to the frame's numbers after all lines have passed it. */
template <class Footprint, class Math>
__global__ void __launch_bounds__(step_threads)
    project_cached(const __grid_constant__ lr_cuda_list_step step, bool is_back)
{
    const int64_t k = (int64_t)blockIdx.x * step_threads + threadIdx.x;
    step_line line(step, k, is_back);
    const step_way way(step, line);
    for (int axis = 0; axis < LR_CUDA_LIST_AXES; axis++) {
        const lr_cuda_list_frame &frame = step.pass.frames[axis];
        if (!((step.axis < 0 && frame.has_events) || step.axis == axis)) continue;
        const int rows = frame.size[0] + frame.window[0] - 1, each = tile_rows(step, frame);
        int slices[2] = {0, frame.slices};
        if (step.skips) { /* skips slices that no line of the block crosses; here all lines have one axis */
            __shared__ int met[2];
            if (threadIdx.x == 0) {
                met[0] = frame.slices;
                met[1] = 0;
            }
            __syncthreads();
            if (line.walk.slices[0] < line.walk.slices[1]) {
                atomicMin(&met[0], line.walk.slices[0]);
                atomicMax(&met[1], line.walk.slices[1]);
            }
            __syncthreads();
            slices[0] = met[0];
            slices[1] = met[1];
        }

        for (int slice = slices[0]; slice < slices[1]; slice++) {
            float *numbers = step.pass.numbers + frame.begin + (int64_t)slice * frame.plane;
            for (int row = 0; row < rows; row += each) {
                const shared_tile tile = {frame, tile_span(step, frame, row)};
                for (int n = (int)threadIdx.x; n < tile.span.count; n += step_threads)
                    tile_numbers[n] = is_back ? 0.0f : numbers[tile.span.begin + n];
                __syncthreads();
                if (line.axis == axis && line.meets(slice))
                    step_slice<Footprint, Math>(step, line, way, slice, is_back, tile);
                __syncthreads();
                if (is_back) {
                    for (int n = (int)threadIdx.x; n < tile.span.count; n += step_threads)
                        if (tile_numbers[n] != 0.0f) atomicAdd(numbers + tile.span.begin + n, tile_numbers[n]);
                    __syncthreads();
                }
            }
        }
    }
    if (!is_back && line.place >= 0) step.pass.values[line.place] = line.sum;
}

template <class Footprint>
__global__ void __launch_bounds__(step_threads)
    project_alone(const __grid_constant__ lr_cuda_list_step step, bool is_back)
{
    const int64_t k = (int64_t)blockIdx.x * step_threads + threadIdx.x;
    step_line line(step, k, is_back);
    const step_way way(step, line);
    for (int slice = line.walk.slices[0]; slice < line.walk.slices[1]; slice++) {
        const grid_tile tile = {step, step.pass.frames[line.axis], slice};
        step_slice<Footprint, plain_math>(step, line, way, slice, is_back, tile);
    }
    if (!is_back && line.place >= 0) step.pass.values[line.place] = line.sum;
}

/* --- launches --- */

using kernel = void (*)(const lr_cuda_list_step, bool);

template <class Plain, class Fast> kernel kernel_of(const lr_cuda_list_step &step)
{
    if (!step.is_cached) return project_alone<Plain>;
    return step.is_fast ? kernel(project_cached<Fast, fast_math>) : kernel(project_cached<Plain, plain_math>);
}

} // namespace

int lr_cuda_launch_list_step(const lr_cuda_list_step *step, bool is_back)
{
    using table = tube_footprint<table_share<true>>;
    const unsigned blocks = (unsigned)(((int64_t)step->count + step_threads - 1) / step_threads);
    const kernel of =
        step->pass.is_line ? kernel_of<line_footprint, line_footprint>(*step)
        : step->pass.tube.table != nullptr
            ? kernel_of<table, table>(*step)
            : kernel_of<tube_footprint<step_gaussian<plain_math>>, tube_footprint<step_gaussian<fast_math>>>(*step);
    of<<<blocks, step_threads, step->is_cached ? (size_t)step->tile_bytes : 0,
         static_cast<cudaStream_t>(step->pass.stream)>>>(*step, is_back);
    return cudaGetLastError();
}
