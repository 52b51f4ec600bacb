/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/launch.h"
#include "cuda_interop/direct/values.cuh"

#include <cuda_runtime.h>

namespace
{

/* The sum of the numbers of a thread's row, in a fixed order; numbers: [LR_CUDA_VALUE_THREADS]. */
__device__ inline double sum_of_row(double *numbers, int rows)
{
    const int thread = (int)threadIdx.x;
    for (int half = LR_CUDA_VALUE_THREADS / 2; half >= rows; half /= 2) {
        __syncthreads();
        if (thread < half) numbers[thread] += numbers[thread + half];
    }
    __syncthreads();
    return numbers[thread % rows];
}

__device__ inline void fill_value_block(const lr_cuda_value_fill &fill, int block)
{
    __shared__ double sums[LR_CUDA_VALUE_THREADS];
    const value_share share = value_share_at(fill, block, (int)threadIdx.x);
    sums[threadIdx.x] = fill_values(fill, share);
    const float largest = normalise_values(fill, share, sum_of_row(sums, share.rows));
    if (largest > 0)
        atomicMax(reinterpret_cast<int *>(fill.peak), __float_as_int(largest)); /* in order, if not negative */
}

/* A view each along y. The first blocks are those of mSRval, which take longest. */
__global__ void __launch_bounds__(LR_CUDA_VALUE_THREADS)
    values_and_maps(const lr_cuda_view_fill *views, int value_blocks)
{
    const lr_cuda_view_fill &view = views[blockIdx.y];
    const int block = (int)blockIdx.x;
    if (block < value_blocks)
        fill_value_block(view.values, block);
    else
        fill_map(view.map, (int64_t)(block - value_blocks) * blockDim.x + threadIdx.x);
}

} // namespace

int lr_cuda_launch_value_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes)
{
    constexpr int group = LR_CUDA_VALUE_THREADS;
    const unsigned map_blocks = (unsigned)((sizes->map + group - 1) / group);
    const dim3 blocks(sizes->value_blocks + map_blocks, (unsigned)sizes->num_views);
    values_and_maps<<<blocks, group>>>(views, sizes->value_blocks);
    return cudaGetLastError();
}
