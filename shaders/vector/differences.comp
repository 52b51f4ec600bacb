#version 450 core
// variants: WHAT=0; WHAT=0 REAL=double; WHAT=1; WHAT=1 REAL=double; WHAT=2; WHAT=2 REAL=double; WHAT=1 HAS_KAPPA=1
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Computes the value, gradient or weights of the relative-differences prior over neighbouring voxels
// (lr_relative_differences in lr/vector.h). WHAT, a value of enum lr_differences, selects the result.
//
// reads:  x, kappa; for a gradient also y, to which the gradient is added
// writes: y
// shape:  each thread takes every n-th number of some layers
#include "common/bindings.h"
#include "kernels/vector.glsl"

#ifndef REAL
#define REAL float
#endif
#ifndef WHAT
#define WHAT 1
#endif

layout(local_size_x = LR_VECTOR_GROUP) in;

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    dvec4 weights[2];
    double gamma, epsilon, scale;
    uint layer, layers; // first layer of this pass, and number of layers
    uvec4 first;        // x, y, z: indices at which vectors y, x and kappa begin in their ranges
    uvec4 size;         // xyz: size of the grid; w: layer at which x and kappa begin
};

layout(std430, binding = LR_BIND_VECTOR_Y) buffer Y
{
    REAL y[];
};
layout(std430, binding = LR_BIND_VECTOR_IN) readonly buffer X
{
    REAL x[];
};
layout(std430, binding = LR_BIND_VECTOR_IN + 1) readonly buffer Kappa
{
    REAL kappa[];
};

double kappa_at(uint k)
{
#ifdef HAS_KAPPA
    return double(kappa[first.z + k]);
#else
    return 1.0lf;
#endif
}

// Adds up the terms of a number and its neighbours. at: x, y and z of the number in the whole grid. The buffer of x has
// only some layers of this grid.
double add_neighbours(ivec3 at)
{
    ivec3 end = ivec3(size.xyz);
    uint place = uint(at.x) + size.x * (uint(at.y) + size.y * uint(at.z - int(size.w)));
    double own = double(x[first.y + place]), own_kappa = kappa_at(place), sum = 0.0lf;
    for (int dz = -1; dz <= 1; dz++) {
        for (int dy = -1; dy <= 1; dy++) {
            for (int dx = -1; dx <= 1; dx++) {
                ivec3 to = at + ivec3(dx, dy, dz);
                int which = abs(dx) + 2 * abs(dy) + 4 * abs(dz);
                if (which == 0 || any(lessThan(to, ivec3(0))) || any(greaterThanEqual(to, end))) continue;
                uint other = uint(to.x) + size.x * (uint(to.y) + size.y * uint(to.z - int(size.w)));
                double v = weights[which / 4][which % 4] * own_kappa * kappa_at(other);
                sum += v > 0.0lf ? v * difference_term(WHAT, own, double(x[first.y + other]), gamma, epsilon) : 0.0lf;
            }
        }
    }
    return sum;
}

void main()
{
    uint threads = gl_NumWorkGroups.x * uint(LR_VECTOR_GROUP), plane = size.x * size.y;
    for (uint k = gl_GlobalInvocationID.x; k < plane * layers; k += threads) {
        uint in_plane = k % plane;
        double sum = add_neighbours(ivec3(in_plane % size.x, in_plane / size.x, k / plane + layer));
        uint at = first.x + k;
#if WHAT == 1
        y[at] = REAL(double(y[at]) + scale * sum);
#else
        y[at] = REAL(sum);
#endif
    }
}
