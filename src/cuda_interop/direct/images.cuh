/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images and LORmap as the gathers of direct_kernels.cuh take them, on the device. */
#ifndef LR_CUDA_DIRECT_IMAGES_CUH
#define LR_CUDA_DIRECT_IMAGES_CUH

#include "cuda_interop/direct/launch.h"

#include <cuda_runtime.h>

struct texture_images {
    lr_cuda_layout layout;
    cudaTextureObject_t source;
    cudaSurfaceObject_t target;

    __device__ float4 load(int q, int x, int y) const
    {
        return tex3D<float4>(source, q + layout.margin[0], x + layout.margin[1], y + layout.margin[2]);
    }
    __device__ void store(int q, int x, int y, float4 texel) const
    {
        surf3Dwrite(texel, target, (q + layout.margin[0]) * (int)sizeof(float4), x + layout.margin[1],
                    y + layout.margin[2]);
    }
    __device__ void store_slice(int q, int x, int y, int slice, float value) const
    {
        surf3Dwrite(value, target, (q + layout.margin[0]) * (int)sizeof(float4) + slice * (int)sizeof(float),
                    x + layout.margin[1], y + layout.margin[2]);
    }
};

struct array_images {
    lr_cuda_layout layout;
    const float4 *source;
    float4 *target;

    __device__ int64_t place(int q, int x, int y) const
    {
        return q + layout.margin[0] +
               (int64_t)layout.extent[0] * (x + layout.margin[1] + (int64_t)layout.extent[1] * (y + layout.margin[2]));
    }
    __device__ float4 load(int q, int x, int y) const { return __ldg(source + place(q, x, y)); }
    __device__ void store(int q, int x, int y, float4 texel) const { target[place(q, x, y)] = texel; }
    __device__ void store_slice(int q, int x, int y, int slice, float value) const
    {
        reinterpret_cast<float *>(target + place(q, x, y))[slice] = value;
    }
};

struct lor_map {
    lr_cuda_layout layout;
    const uint16_t *entries;

    __device__ int operator()(int x, int y) const
    {
        return __ldg(entries + x + layout.margin[1] + layout.extent[1] * (y + layout.margin[2]));
    }
};

#endif
