// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Replacements for what CUDA's compiler provides, for one thread on the processor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#define __device__
#define __host__
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
struct int2 {
    int x, y;
};
struct int4 {
    int x, y, z, w;
};
struct float2 {
    float x, y;
};
struct double2 {
    double x, y;
};
struct float4 {
    float x, y, z, w;
};
static inline float4 make_float4(float x, float y, float z, float w)
{
    return float4{x, y, z, w};
}
struct dim3 {
    unsigned x, y, z;

    dim3(unsigned size_x = 1, unsigned size_y = 1, unsigned size_z = 1) : x(size_x), y(size_y), z(size_z) {}
};
/* Numbers and sizes of the current block and thread. */
[[maybe_unused]] static thread_local dim3 gridDim, blockDim, blockIdx, threadIdx;

/* Runs the threads of a kernel one after the other. */
template <class... Parameters, class... Arguments>
static inline void run_kernel(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, const Arguments &...arguments)
{
    gridDim = blocks;
    blockDim = threads;
    for (unsigned k = 0; k < blocks.x * blocks.y * blocks.z; k++) {
        blockIdx = {k % blocks.x, k / blocks.x % blocks.y, k / blocks.x / blocks.y};
        for (unsigned n = 0; n < threads.x * threads.y; n++) {
            threadIdx = {n % threads.x, n / threads.x, 0};
            kernel(arguments...);
        }
    }
}
using std::max;
using std::min;
template <class T> static inline T __ldg(const T *from)
{
    return *from;
}

/* A 3-D texture or surface. Its handle is the address of this description. */
struct stand_in_texture {
    char *texels;
    int size[3], texel_bytes;
};
using cudaTextureObject_t = unsigned long long;
using cudaSurfaceObject_t = unsigned long long;

/* Places beyond the texture get the texel at its edge. */
template <class T> static inline T tex3D(cudaTextureObject_t texture, float x, float y, float z)
{
    T texel;
    const auto &of = *reinterpret_cast<const stand_in_texture *>(texture);
    const auto within = [](float at, int size) { return std::min(std::max((int)std::floor(at), 0), size - 1); };
    const int64_t row = within(y, of.size[1]) + (int64_t)of.size[1] * within(z, of.size[2]);
    std::memcpy(&texel, of.texels + of.texel_bytes * (within(x, of.size[0]) + of.size[0] * row), sizeof(texel));
    return texel;
}

template <class T> static inline void surf3Dwrite(T texel, cudaSurfaceObject_t surface, int x_bytes, int y, int z)
{
    const auto &of = *reinterpret_cast<const stand_in_texture *>(surface);
    std::memcpy(of.texels + x_bytes + (int64_t)of.texel_bytes * of.size[0] * (y + (int64_t)of.size[1] * z), &texel,
                sizeof(texel));
}

/* Each operation is rounded on its own, without fused multiply-add. */
static inline double __dmul_rn(double a, double b)
{
    const volatile double product = a * b;
    return product;
}
static inline double __dadd_rn(double a, double b)
{
    const volatile double sum = a + b;
    return sum;
}
static inline double __ddiv_rn(double a, double b)
{
    const volatile double ratio = a / b;
    return ratio;
}

/* Kernels run one after the other, so there is nothing to wait for. */
static inline void wait_for_last_kernel() {}
static inline void let_next_kernel_begin() {}
