/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct_launch.h"
#include "cuda_interop/direct_values.cuh"

#include <cuda_runtime.h>

namespace
{

/* A view each along y, here and below. */
__global__ void lor_maps(const lr_cuda_view_fill *views)
{
    fill_map(views[blockIdx.y].map, (int64_t)blockIdx.x * blockDim.x + threadIdx.x);
}

/* The sum of the numbers of a thread's row, in a fixed order; numbers: [LR_CUDA_VALUE_THREADS]. */
__device__ inline double sum_of_row(double *numbers, int rows)
{
    const int thread = (int)threadIdx.x;
    for (int half = LR_CUDA_VALUE_THREADS / 2; half >= rows; half /= 2) {
        __syncthreads();
        if (thread < half) {
            numbers[thread] += numbers[thread + half];
        }
    }
    __syncthreads();
    return numbers[thread % rows];
}

__global__ void __launch_bounds__(LR_CUDA_VALUE_THREADS) values(const lr_cuda_view_fill *views)
{
    __shared__ double sums[LR_CUDA_VALUE_THREADS];
    const lr_cuda_value_fill &fill = views[blockIdx.y].values;
    const value_share share = value_share_at(fill, (int)blockIdx.x, (int)threadIdx.x);
    sums[threadIdx.x] = fill_values(fill, share);
    const float largest = normalise_values(fill, share, sum_of_row(sums, share.rows));
    if (largest > 0) {
        atomicMax(reinterpret_cast<int *>(fill.peak),
                  __float_as_int(largest)); /* in order, if not negative */
    }
}

} // namespace

int lr_cuda_launch_value_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes)
{
    constexpr int group = 256;
    const unsigned num_views = (unsigned)sizes->num_views;
    lor_maps<<<dim3((unsigned)((sizes->map + group - 1) / group), num_views), group>>>(views);
    values<<<dim3((unsigned)sizes->value_blocks, num_views), LR_CUDA_VALUE_THREADS>>>(views);
    return cudaGetLastError();
}
