/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "fft/cufft_product.cuh"

#include <cuda_runtime.h>

namespace
{

constexpr int lanes = 256;

__global__ void multiply(fft_product product)
{
    multiply_bin(product, (int)blockIdx.y, (int64_t)blockIdx.x * lanes + threadIdx.x);
}

} // namespace

int fft_launch_product(const fft_product *product)
{
    const dim3 grid((unsigned)((product->bins + lanes - 1) / lanes), (unsigned)product->volumes);
    multiply<<<grid, lanes>>>(*product);
    return cudaGetLastError();
}
