/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/updates.cuh"

#include "cuda_interop/direct/launch.h"
#include "cuda_interop/overlap.cuh"

#include <cuda_runtime.h>

namespace
{

constexpr unsigned group = 256;

/* Images that are surfaces. */
struct surface_memory {
    __device__ static float4 load(const lr_cuda_image &image, int q, int x, int y)
    {
        return surf3Dread<float4>(image.surface, (q + image.margin[0]) * (int)sizeof(float4), x + image.margin[1],
                                  y + image.margin[2]);
    }
    __device__ static void store(const lr_cuda_image &image, int q, int x, int y, float4 texel)
    {
        surf3Dwrite(texel, image.surface, (q + image.margin[0]) * (int)sizeof(float4), x + image.margin[1],
                    y + image.margin[2]);
    }
};

template <class Memory> __global__ void __launch_bounds__(group) discrepancies(lr_cuda_discrepancy pass)
{
    let_next_kernel_begin();
    wait_for_last_kernel();
    find_discrepancy<Memory>(pass, blockIdx.x * group + threadIdx.x);
}

template <class Memory> __global__ void __launch_bounds__(group) changes(lr_cuda_change pass)
{
    let_next_kernel_begin();
    wait_for_last_kernel();
    change_image<Memory>(pass, blockIdx.x * group + threadIdx.x);
}

unsigned groups(const lr_cuda_layout &layout)
{
    const int64_t texels = (int64_t)layout.quads * layout.size[0] * layout.size[1];
    return (unsigned)((texels + group - 1) / group);
}

} // namespace

int lr_cuda_launch_discrepancy(const lr_cuda_discrepancy *pass)
{
    const auto kernel = pass->histo.texels != nullptr ? discrepancies<array_memory> : discrepancies<surface_memory>;
    const overlapping_launch launch(kernel, groups(pass->layout), group);
    return cudaLaunchKernelEx(&launch.config, kernel, *pass);
}

int lr_cuda_launch_change(const lr_cuda_change *pass)
{
    const auto kernel = pass->image.texels != nullptr ? changes<array_memory> : changes<surface_memory>;
    const overlapping_launch launch(kernel, groups(pass->layout), group);
    return cudaLaunchKernelEx(&launch.config, kernel, *pass);
}
