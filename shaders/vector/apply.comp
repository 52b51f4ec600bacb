#version 450 core
// variants: REAL=double OTHER=float; OTHER=double; INPUTS=3; INPUTS=3 REAL=double
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// An operation on vectors, element by element. OP is an operation of kernels/vector.glsl.
//
// reads:  y and INPUTS inputs of the same precision; a conversion's input has the OTHER precision
// writes: y
// shape:  each thread takes every n-th element
#include "vector/vector.glsl"

#include "kernels/vector.glsl"

#ifndef OP
#define OP LR_VECTOR_CONVERT
#endif
#ifndef INPUTS
#define INPUTS 1
#endif
#ifndef OTHER
#define OTHER REAL
#endif

layout(std430, binding = LR_BIND_VECTOR_Y) buffer Y
{
    REAL y[];
};
layout(std430, binding = LR_BIND_VECTOR_IN) readonly buffer In
{
    OTHER in_0[];
};
layout(std430, binding = LR_BIND_VECTOR_IN + 1) readonly buffer In1
{
    REAL in_1[];
};
layout(std430, binding = LR_BIND_VECTOR_IN + 2) readonly buffer In2
{
    REAL in_2[];
};

void main()
{
    for (uint k = gl_GlobalInvocationID.x; k < count; k += num_threads()) {
        uint at = first.x + k;
        double old = vector_reads(OP) ? double(y[at]) : 0.0lf;
        double x = INPUTS > 0 ? double(in_0[first.y + k]) : 0.0lf;
        double by = INPUTS > 1 ? double(in_1[first.z + k]) : 0.0lf;
        double sensitivity = INPUTS > 2 ? double(in_2[first.w + k]) : 0.0lf;
        y[at] = REAL(vector_result(OP, old, x, by, sensitivity, scalar, lowest));
    }
}
