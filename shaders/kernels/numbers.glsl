// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Functions of numbers for which CUDA has single instructions. In CUDA, a subnormal argument or result counts as 0.
// C++ needs <cmath> before it.
#ifndef LR_KERNELS_NUMBERS
#define LR_KERNELS_NUMBERS
#include "kernels/language.glsl"

#ifdef GL_core_profile
#define per_number(x) (1.0 / (x))
#define quotient_of(a, b) ((a) / (b))
#define between_0_and_1(x) clamp(x, 0.0, 1.0)

float per_root(float x)
{
    return inversesqrt(x);
}

double per_root(double x)
{
    return 1.0lf / sqrt(x);
}

float copysignf(float size, float other)
{
    return uintBitsToFloat((floatBitsToUint(size) & 0x7fffffffu) | (floatBitsToUint(other) & 0x80000000u));
}
#else
// 2^x, accurate to a few units in the last place.
LR_KERNEL float power_of_two(float x)
{
#ifdef __CUDA_ARCH__
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
#else
    return exp2f(x);
#endif
}

// 1 / sqrt(x). The results of per_root and per_number are accurate to a unit in the last place.
LR_KERNEL float per_root(float x)
{
#ifdef __CUDA_ARCH__
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
#else
    return 1.0f / sqrtf(x);
#endif
}

LR_KERNEL double per_root(double x)
{
#ifdef __CUDA_ARCH__
    return rsqrt(x);
#else
    return 1.0 / sqrt(x);
#endif
}

LR_KERNEL float per_number(float x)
{
#ifdef __CUDA_ARCH__
    float number;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(number) : "f"(x));
    return number;
#else
    return 1.0f / x;
#endif
}

// a / b to two units in the last place, for |b| between 2^-126 and 2^126.
LR_KERNEL float quotient_of(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fdividef(a, b);
#else
    return a / b;
#endif
}

LR_KERNEL float between_0_and_1(float x)
{
#ifdef __CUDA_ARCH__
    return __saturatef(x);
#else
    return fminf(fmaxf(x, 0.0f), 1.0f);
#endif
}
#endif
#endif
