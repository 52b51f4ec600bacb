/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Instructions of a device's threads, and their equivalents on the processor. */
#ifndef LR_CUDA_LISTMODE_LANES_CUH
#define LR_CUDA_LISTMODE_LANES_CUH

#include <cmath>
#include <cstdint>

#include "kernels/numbers.glsl"

/* Accurate arithmetic, and faster arithmetic by single instructions of the device. */
struct plain_math {
    __host__ __device__ static float power(float x) { return expf(x * 0.69314718f); }
    __host__ __device__ static float quotient(float a, float b) { return a / b; }
};
struct fast_math {
    __host__ __device__ static float power(float x) { return power_of_two(x); }
    __host__ __device__ static float quotient(float a, float b) { return quotient_of(a, b); }
};

/* The nearest integer, ties to even, for magnitudes below 2^22. */
__host__ __device__ inline float nearest_whole(float x, int *whole)
{
    const float magic = 12582912.0f, moved = x + magic;
#ifdef __CUDA_ARCH__
    *whole = __float_as_int(moved) - 0x4b400000;
#else
    *whole = (int)(moved - magic);
#endif
    return moved - magic;
}

/* The nearest integer for magnitudes below 2^31. */
__host__ __device__ inline int32_t word_of(float x)
{
#ifdef __CUDA_ARCH__
    return __float2int_rn(x);
#else
    return (int32_t)lrintf(x);
#endif
}

/* Returns the address in a register. Compilers tend to compute an address again for each use. */
template <class Number> __host__ __device__ inline Number *held_address(Number *address)
{
#ifdef __CUDA_ARCH__
    Number *held;
    asm volatile("mov.u64 %0, %1;" : "=l"(held) : "l"(address));
    return held;
#else
    return address;
#endif
}

/* Lanes of a warp that run a loop together. Lanes that leave an inner loop early could otherwise continue alone to
 * the end of the outer loop. The warp would then run each iteration several times, for a few lanes each. These lanes
 * ask the whole group if there is another iteration, and so wait for each other. */
struct lane_group {
    uint32_t lanes;

    /* True if `is_so` holds for any lane of the group. All lanes must call it. */
    __host__ __device__ bool any(bool is_so) const
    {
#ifdef __CUDA_ARCH__
        return __any_sync(lanes, is_so) != 0;
#else
        return is_so;
#endif
    }

    /* The lanes for which `is_so` holds. Only these may use the result, but all lanes must call it. */
    __host__ __device__ lane_group where(bool is_so) const
    {
#ifdef __CUDA_ARCH__
        return {__ballot_sync(lanes, is_so)};
#else
        return {is_so ? lanes : 0u};
#endif
    }
};

/* The group of all lanes of a warp; all must call it. The processor has one lane. */
__host__ __device__ inline lane_group whole_warp()
{
    return {0xffffffffu};
}

/* True if `is_so` holds for any lane of the warp that calls this together. */
__host__ __device__ inline bool any_lane_of(bool is_so)
{
#ifdef __CUDA_ARCH__
    return __any_sync(__activemask(), is_so) != 0;
#else
    return is_so;
#endif
}

#endif
