#version 450 core
// variants: REAL=double
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// A convolution along an axis (lr_convolution in lr/vector.h).
//
// reads:  x
// writes: y
// shape:  each thread takes every n-th number of some layers
#include "common/bindings.h"

#ifndef REAL
#define REAL float
#endif

layout(local_size_x = LR_VECTOR_GROUP) in;

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    dvec4 weights[32];
    uvec4 first; // x, y: index at which vectors y and x begin in their ranges; z: first layer; w: number of layers
    uvec4 size;  // xyz: size of the row; w: first layer of vector x
    ivec4 along; // x: axis; y: reach
};

layout(std430, binding = LR_BIND_VECTOR_Y) buffer Y
{
    REAL y[];
};
layout(std430, binding = LR_BIND_VECTOR_IN) readonly buffer X
{
    REAL x[];
};

double convolve(ivec3 at)
{
    double sum = 0.0lf;
    ivec3 to = at;
    for (int k = -along.y; k <= along.y; k++) {
        to[along.x] = at[along.x] + k;
        if (to[along.x] >= 0 && to[along.x] < int(size[along.x])) {
            uint place = uint(to.x) + size.x * (uint(to.y) + size.y * uint(to.z - int(size.w)));
            sum += weights[abs(k) / 4][abs(k) % 4] * double(x[first.y + place]);
        }
    }
    return sum;
}

void main()
{
    uint threads = gl_NumWorkGroups.x * uint(LR_VECTOR_GROUP), plane = size.x * size.y;
    for (uint k = gl_GlobalInvocationID.x; k < plane * first.w; k += threads) {
        uint in_plane = k % plane;
        y[first.x + k] = REAL(convolve(ivec3(in_plane % size.x, in_plane / size.x, k / plane + first.z)));
    }
}
