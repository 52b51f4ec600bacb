/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/launch.h"
#include "cuda_interop/overlap.cuh"

#include "cuda_interop/direct/bands_products.cuh"
#include "cuda_interop/direct/sort.cuh"

namespace
{

enum {
    LANES = 32,
    MOST_THREADS = 1024,
    FEW_THREADS = 128, /* beside other streams' kernels, between whose blocks they find room */
    MOST_SLICES = 128, /* beside each other */
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

/* The largest of a block's numbers, none of which is negative. */
__device__ inline float largest_in_block(float number)
{
    __shared__ unsigned largest[MOST_THREADS / LANES];
    const unsigned of_warp = __reduce_max_sync(0xffffffffu, __float_as_uint(number));
    if (threadIdx.x % LANES == 0) largest[threadIdx.x / LANES] = of_warp;
    __syncthreads();
    unsigned of_block = 0;
    for (unsigned k = 0; k < blockDim.x / LANES; k++) of_block = max(of_block, largest[k]);
    return __uint_as_float(of_block);
}

#endif

/* Kept: pieces of a thread. */
template <int Kept, int Threads>
__global__ void __launch_bounds__(Threads, Threads == MOST_THREADS ? 2 : 8)
    sort_rows(const __grid_constant__ lr_cuda_bands pass, const float4 *source,
              const __grid_constant__ lr_cuda_band_source sorted, sort_threads threads)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    const int row = (int)blockIdx.x;
    const float *numbers = reinterpret_cast<const float *>(source);
    row_sorter<Kept> own;
    let_next_kernel_begin();
    own.start(pass, find_row(pass, sorted, row), threads, (int)threadIdx.x);
    wait_for_last_kernel();
    float peak = largest_in_block(own.load(numbers));
    if (!(peak < INFINITY)) {
        __syncthreads();
        peak = largest_in_block(own.look_again(numbers));
    }
    own.store(pass, numbers, sorted, peak);
    if (threadIdx.x == 0) sorted.units[row] = unit_of(peak);
#endif
}

template <int Kept, int Threads> cudaError_t launch(const lr_cuda_bands &pass, const lr_cuda_images &images)
{
    const auto kernel = sort_rows<Kept, Threads>;
    const int octets = pass.pitch / LR_CUDA_OCTET, slices = min(pass.layout.size[2], MOST_SLICES);
    const int groups = max(1, min((octets + Kept - 1) / Kept, Threads / slices));
    const int threads = (slices * groups + LANES - 1) / LANES * LANES;
    overlapping_launch launch(kernel, (unsigned)pass.num_lattice_rows, (unsigned)threads);
    launch.go_ahead_of(images.stream);
    return cudaLaunchKernelEx(&launch.config, kernel, pass, images.source, images.sorted, sort_threads{slices, groups});
}

} // namespace

int lr_cuda_launch_sort(const lr_cuda_bands *pass, const lr_cuda_images *images)
{
    return images->stream != nullptr ? launch<4, FEW_THREADS>(*pass, *images) : launch<1, MOST_THREADS>(*pass, *images);
}
