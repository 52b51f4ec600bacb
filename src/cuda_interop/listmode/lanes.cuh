/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Instructions of the device, and code for the processor that does the same. */
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/numbers.glsl"

/* Two kinds of arithmetic: accurate, and faster by single instructions of the device. */
struct plain_math {
    __host__ __device__ static float power(float x) { return expf(x * 0.69314718f); }
    __host__ __device__ static float quotient(float a, float b) { return a / b; }
};
struct fast_math {
    __host__ __device__ static float power(float x) { return power_of_two(x); }
    __host__ __device__ static float quotient(float a, float b) { return quotient_of(a, b); }
};

/* Returns the nearest integer, for magnitudes below 2^22. Ties go to the even integer. */
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

/* Returns the nearest integer, for magnitudes below 2^31. */
__host__ __device__ inline int32_t word_of(float x)
{
#ifdef __CUDA_ARCH__
    return __float2int_rn(x);
#else
    return (int32_t)lrintf(x);
#endif
}

/* Keeps an address in a register. Compilers tend to compute it again for each use. */
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

/* Lanes of a warp that run a loop together. Without such a group, lanes that leave an inner loop early could continue
 * alone to the end of the outer loop. The warp would then run each iteration several times, with a few lanes each.
 * Lanes of a group wait for each other, because the whole group is asked if there is another iteration. */
struct lane_group {
    uint32_t lanes;

    /* Returns true if `is_so` is true for any lane of the group. All lanes of the group must call this function. */
    __host__ __device__ bool any(bool is_so) const
    {
#ifdef __CUDA_ARCH__
        return __any_sync(lanes, is_so) != 0;
#else
        return is_so;
#endif
    }

    /* Returns the group of the lanes for which `is_so` is true. All lanes must call this function, but only the lanes
     * of the new group can use the result. */
    __host__ __device__ lane_group where(bool is_so) const
    {
#ifdef __CUDA_ARCH__
        return {__ballot_sync(lanes, is_so)};
#else
        return {is_so ? lanes : 0u};
#endif
    }
};

/* Returns the group of all lanes of a warp. All lanes must make the call. On the processor, the group has one lane. */
__host__ __device__ inline lane_group whole_warp()
{
    return {0xffffffffu};
}

/* Returns true if `is_so` is true for any lane of the warp that makes this call. */
__host__ __device__ inline bool any_lane_of(bool is_so)
{
#ifdef __CUDA_ARCH__
    return __any_sync(__activemask(), is_so) != 0;
#else
    return is_so;
#endif
}
