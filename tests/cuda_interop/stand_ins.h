// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// What CUDA's compiler brings along, for one thread on the processor.
#ifndef LR_TEST_CUDA_STAND_INS_H
#define LR_TEST_CUDA_STAND_INS_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#define __device__
#define __host__
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
using std::max;
using std::min;
template <class T> static inline T __ldg(const T *from)
{
    return *from;
}

/* Rounded, each by itself. */
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

static inline bool any_lane(bool is_so)
{
    return is_so;
}

static inline void add_in_turn(float &sum, float a, float b)
{
    sum += a * b;
}
static inline int same_in_warp(int number)
{
    return number;
}

#endif
