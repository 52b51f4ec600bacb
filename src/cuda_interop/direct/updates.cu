/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The updates of the family `direct` (docs/method/direct.md, "Updates"). A thread has the four voxels of a texel.
 * Tests also run the kernels on the processor. A type gives access to the texels of an lr_cuda_image; it has
 *   static float4 load(image, q, x, y), static void store(image, q, x, y, texel) */
#include "common/bindings.h"
#include "cuda_interop/direct/gathers.cuh"
#include "direct/backend.h"
#ifdef __CUDACC__
#include "cuda_interop/overlap.cuh"
#endif

/* Images that are arrays. */
struct array_memory {
    __device__ static int64_t place(const lr_cuda_image &image, int q, int x, int y)
    {
        return q + image.margin[0] +
               (int64_t)image.extent[0] * (x + image.margin[1] + (int64_t)image.extent[1] * (y + image.margin[2]));
    }
    __device__ static float4 load(const lr_cuda_image &image, int q, int x, int y)
    {
        return image.texels[place(image, q, x, y)];
    }
    __device__ static void store(const lr_cuda_image &image, int q, int x, int y, float4 texel)
    {
        image.texels[place(image, q, x, y)] = texel;
    }
};

/* The texel of a thread; there are fewer than 2^32 threads. */
struct texel_place {
    int q, x, y;

    __device__ texel_place(const lr_cuda_layout &layout, uint32_t thread)
    {
        const uint32_t column = thread / (uint32_t)layout.quads;
        q = (int)(thread - column * (uint32_t)layout.quads);
        y = (int)(column / (uint32_t)layout.size[0]);
        x = (int)(column - (uint32_t)y * (uint32_t)layout.size[0]);
    }
};

template <class Memory> __device__ float4 load_or(const lr_cuda_image &image, const texel_place &at, float otherwise)
{
    return image.texels != nullptr || image.surface != 0 ? Memory::load(image, at.q, at.x, at.y)
                                                         : make_float4(otherwise, otherwise, otherwise, otherwise);
}

/* The quotient, or `otherwise` if the divisor is at most LR_DIRECT_LEAST. */
__device__ inline float quotient(float number, float by, float otherwise)
{
    return by > (float)LR_DIRECT_LEAST ? number / by : otherwise;
}

/* n (y / (n e + b) - less). n: factor; y: counts; e: estimate; b: additive. */
__device__ inline float discrepancy(float estimate, float counts, float additive, float factor, float less)
{
    return factor * (quotient(counts, factor * estimate + additive, less) - less);
}

template <class Memory> __global__ void __launch_bounds__(LR_CUDA_GROUP) discrepancies(lr_cuda_discrepancy pass)
{
    let_next_kernel_begin();
    wait_for_last_kernel();
    const texel_place at(pass.layout, blockIdx.x * LR_CUDA_GROUP + threadIdx.x);
    if (at.y >= pass.layout.size[1]) return;
    const float4 n = load_or<Memory>(pass.factors, at, 1);
    float4 result = n;
    if (pass.what != LR_DIRECT_DO_SENSITIVITY) {
        const float less = pass.what == LR_DIRECT_DO_RAMLA ? 1.0f : 0.0f;
        const float4 e = Memory::load(pass.histo, at.q, at.x, at.y);
        const float4 y = Memory::load(pass.counts, at.q, at.x, at.y);
        const float4 b = load_or<Memory>(pass.additive, at, 0);
        result = make_float4(discrepancy(e.x, y.x, b.x, n.x, less), discrepancy(e.y, y.y, b.y, n.y, less),
                             discrepancy(e.z, y.z, b.z, n.z, less), discrepancy(e.w, y.w, b.w, n.w, less));
    }
    Memory::store(pass.histo, at.q, at.x, at.y, within_grid(pass.layout, result, at.q));
}

/* RAMLA: x (1 + lambda c), but at least 0. EM: x c / s, or x if s is tiny. Otherwise: x + c. */
__device__ inline float changed(const lr_cuda_change &pass, float x, float c, float s)
{
    if (pass.what == LR_DIRECT_DO_RAMLA) {
        const float factor = 1.0f + pass.lambda * c;
        return factor > 0 ? x * factor : 0.0f;
    }
    return pass.what == LR_DIRECT_DO_EM ? x * quotient(c, s, 1) : x + c;
}

template <class Memory> __global__ void __launch_bounds__(LR_CUDA_GROUP) changes(lr_cuda_change pass)
{
    let_next_kernel_begin();
    wait_for_last_kernel();
    const texel_place at(pass.layout, blockIdx.x * LR_CUDA_GROUP + threadIdx.x);
    if (at.y >= pass.layout.size[1]) return;
    const float4 x = Memory::load(pass.image, at.q, at.x, at.y);
    const float4 c = Memory::load(pass.by, at.q, at.x, at.y);
    const float4 s = load_or<Memory>(pass.sensitivity, at, 0);
    Memory::store(pass.image, at.q, at.x, at.y,
                  make_float4(changed(pass, x.x, c.x, s.x), changed(pass, x.y, c.y, s.y), changed(pass, x.z, c.z, s.z),
                              changed(pass, x.w, c.w, s.w)));
}

/* --- launches --- */
#ifdef __CUDACC__

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

template <class Pass> static int launch(void (*kernel)(Pass), const Pass &pass)
{
    const int64_t texels_of_grid = (int64_t)pass.layout.quads * pass.layout.size[0] * pass.layout.size[1];
    const overlapping_launch launch(kernel, groups_of(texels_of_grid), LR_CUDA_GROUP);
    return cudaLaunchKernelEx(&launch.config, kernel, pass);
}

int lr_cuda_launch_discrepancy(const lr_cuda_discrepancy *pass)
{
    return launch(pass->histo.texels != nullptr ? discrepancies<array_memory> : discrepancies<surface_memory>, *pass);
}

int lr_cuda_launch_change(const lr_cuda_change *pass)
{
    return launch(pass->image.texels != nullptr ? changes<array_memory> : changes<surface_memory>, *pass);
}

#endif
