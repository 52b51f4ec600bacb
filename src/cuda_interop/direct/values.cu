/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One thread's part of LORmap and mSRval of a view (paper 1 of lr/direct.h, section 4.1). They are computed as in
 * shaders/direct/map.comp and direct/values.comp, except that exponents and sums of mSRval are in double. Operations
 * that decide on which side of a border a column lies are rounded separately, as in the reference. */
#include "cuda_interop/direct/passes.h"

/* LORmap's entry of a thread, margins included. */
__device__ inline void fill_map(const lr_cuda_map_fill &fill, int64_t thread)
{
    const lr_cuda_layout &layout = fill.layout;
    if (thread >= (int64_t)layout.extent[1] * layout.extent[2]) return;
    const int x = (int)(thread % layout.extent[1]) - layout.margin[1];
    const int y = (int)(thread / layout.extent[1]) - layout.margin[2];
    int kernel = 0;
    if (x >= 0 && x < layout.size[0] && y >= 0 && y < layout.size[1]) {
        const double x_mm = __dadd_rn(fill.origin_mm[0], __dmul_rn((double)x, fill.voxel_mm[0]));
        const double y_mm = __dadd_rn(fill.origin_mm[1], __dmul_rn((double)y, fill.voxel_mm[1]));
        const double radial_mm = __dadd_rn(__dmul_rn(x_mm, fill.radial[0]), __dmul_rn(y_mm, fill.radial[1]));
        const double share = __dadd_rn(__ddiv_rn(fabs(radial_mm), fill.epsilon_mm), fill.tie);
        const bool is_negative = radial_mm < __dmul_rn(-fill.tie, fill.epsilon_mm);
        kernel = (int)floor(share) + (is_negative ? fill.mirrored : 0);
    }
    fill.map[thread] = (uint16_t)kernel;
}

/* --- mSRval --- */

/* The offsets of a row that a thread handles: every step-th offset from `first` on. The numbers of two threads of a
 * block that have the same row differ by a multiple of `rows`. */
struct value_share {
    int row, first, step;
    int rows; /* rows of the block */
};

/* row >= num_rows if the thread has no row. */
__device__ inline value_share value_share_at(const lr_cuda_value_fill &fill, int block, int thread)
{
    const int rows = fill.block_rows;
    return {block * rows + thread % rows, thread / rows, LR_CUDA_VALUE_THREADS / rows, rows};
}

__device__ inline double along_axis(const double (&axis)[3], const int4 &offset)
{
    return axis[0] * offset.x + axis[1] * offset.y + axis[2] * offset.z;
}

/* An entry of mSRval before it is normalised: a Gaussian along the line and along the axis, times a measured profile or
 * one or two Gaussians across. */
__device__ inline double value_at(const lr_cuda_value_fill &fill, int row, const int4 &offset)
{
    const double2 kernel = fill.kernels[row];
    const double along = along_axis(fill.tof, offset), up = along_axis(fill.axial, offset);
    const double outward_mm = kernel.y * along_axis(fill.radial, offset);
    const double beside = along * along + up * up;
    if (fill.num_samples > 0) {
        const double tie = 1e-4; /* fraction of a step, so that a position on the profile's end counts as inside */
        const double at = (outward_mm - fill.first_sample_mm) / fill.sample_step_mm;
        const int last = fill.num_samples - 1;
        double sample = 0;
        if (at >= -tie && at <= last + tie) {
            const int left = min(max((int)floor(at), 0), last - 1);
            const float *samples = fill.samples + (int64_t)row * fill.num_samples + left;
            sample = samples[0] + (at - left) * ((double)samples[1] - samples[0]);
        }
        return exp(-0.5 * beside) * sample;
    }
    const double first = outward_mm / kernel.x;
    double value = exp(-0.5 * (beside + first * first));
    if (fill.second_width > 0) {
        const double second = (first + fill.second_shift) / fill.second_width;
        value += exp(-0.5 * (beside + second * second)) / fill.second_width;
    }
    return value;
}

/* Returns the sum of the thread's values. */
__device__ inline double fill_values(const lr_cuda_value_fill &fill, const value_share &share)
{
    double sum = 0;
    for (int i = share.first; i < fill.num_offsets && share.row < fill.num_rows; i += share.step) {
        const double value = value_at(fill, share.row, fill.offsets[i]);
        fill.values[(int64_t)i * fill.num_rows + share.row] = (float)value;
        sum += value;
    }
    return sum;
}

/* Divides the thread's values by their row's sum. Returns the largest value. */
__device__ inline float normalise_values(const lr_cuda_value_fill &fill, const value_share &share, double sum)
{
    float largest = 0;
    for (int i = share.first; i < fill.num_offsets && share.row < fill.num_rows; i += share.step) {
        float &value = fill.values[(int64_t)i * fill.num_rows + share.row];
        value = (float)(value / sum);
        largest = fmaxf(largest, value);
    }
    return largest;
}

/* --- launches: tests run the functions above on the processor --- */
#ifdef __CUDACC__

#include <cuda_runtime.h>

/* The y index of a block is the view. The first blocks compute mSRval, because this work takes longest. */
static __global__ void __launch_bounds__(LR_CUDA_VALUE_THREADS)
    values_and_maps(const lr_cuda_view_fill *views, int value_blocks)
{
    __shared__ double sums[LR_CUDA_VALUE_THREADS];
    const lr_cuda_view_fill &view = views[blockIdx.y];
    const int block = (int)blockIdx.x, thread = (int)threadIdx.x;
    if (block < value_blocks) {
        const lr_cuda_value_fill &fill = view.values;
        const value_share share = value_share_at(fill, block, thread);
        sums[thread] = fill_values(fill, share);

        /* The sum of each row, in a fixed order. */
        for (int half = LR_CUDA_VALUE_THREADS / 2; half >= share.rows; half /= 2) {
            __syncthreads();
            if (thread < half) sums[thread] += sums[thread + half];
        }
        __syncthreads();
        const float largest = normalise_values(fill, share, sums[thread % share.rows]);
        if (largest > 0) /* numbers that are not negative have the same order as their bits */
            atomicMax(reinterpret_cast<int *>(fill.peak), __float_as_int(largest));
    } else {
        fill_map(view.map, (int64_t)(block - value_blocks) * blockDim.x + threadIdx.x);
    }
}

int lr_cuda_launch_value_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes)
{
    constexpr int group = LR_CUDA_VALUE_THREADS;
    const unsigned map_blocks = (unsigned)((sizes->map + group - 1) / group);
    const dim3 blocks(sizes->value_blocks + map_blocks, (unsigned)sizes->num_views);
    values_and_maps<<<blocks, group>>>(views, sizes->value_blocks);
    return cudaGetLastError();
}

#endif
