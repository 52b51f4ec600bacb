#version 450 core
// variants: OP=0 REAL=double OTHER=float; OP=0 OTHER=double; OP=1; OP=2; OP=3; OP=4; OP=4 REAL=double; OP=5; OP=5 REAL=double; OP=6; OP=6 REAL=double
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// An operation on vectors, element by element. OP is its number in kernels/vector.glsl.
//
// reads:  y and up to three inputs of the same precision; a conversion's input has the OTHER
//         precision
// writes: y
// shape:  each thread takes every n-th element
#include "vector/vector.glsl"

#include "kernels/vector.glsl"

#ifndef OP
#define OP 0
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
        double by = OP >= LR_VECTOR_UPDATE_EM ? double(in_1[first.z + k]) : 0.0lf;
        double sensitivity = OP >= LR_VECTOR_UPDATE_EM ? double(in_2[first.w + k]) : 0.0lf;
        y[at] = REAL(vector_result(OP, old, double(in_0[first.y + k]), by, sensitivity, scalar, lowest));
    }
}
