#version 450 core
// variants: OP=0 REAL=double OTHER=float; OP=0 OTHER=double; OP=1; OP=2; OP=3; OP=4; OP=4 REAL=double; OP=5; OP=5 REAL=double; OP=6; OP=6 REAL=double
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// An operation on vectors, element by element. OP is one of enum lr_vector_op.
//
// reads:  y and up to three inputs of the same precision; a conversion's input has the OTHER
//         precision
// writes: y
// shape:  each thread takes every n-th element
#include "vector/vector.glsl"

#ifndef OP
#define OP 0
#endif
#ifndef OTHER
#define OTHER REAL
#endif

layout(std430, binding = LR_BIND_VECTOR_Y) buffer Y {
    REAL y[];
};
layout(std430, binding = LR_BIND_VECTOR_IN) readonly buffer In {
    OTHER in_0[];
};
layout(std430, binding = LR_BIND_VECTOR_IN + 1) readonly buffer In1 {
    REAL in_1[];
};
layout(std430, binding = LR_BIND_VECTOR_IN + 2) readonly buffer In2 {
    REAL in_2[];
};

void main()
{
    for (uint k = gl_GlobalInvocationID.x; k < count; k += num_threads()) {
        uint at = first.x + k;
#if OP > 0 && OP < 4
        double before = double(y[at]);
#endif
        double x = double(in_0[first.y + k]);
#if OP == 0
        double after = x;
#elif OP == 1
        double after = before * x;
#elif OP == 2
        double after = x > 0.0lf ? before / x : scalar;
#elif OP == 3
        double after = before + scalar * x;
#else
        double by = double(in_1[first.z + k]), sensitivity = double(in_2[first.w + k]);
#if OP == 4
        double after = sensitivity > 0.0lf ? x / sensitivity * by : x;
#elif OP == 6
        // in this update, `sensitivity` holds the scale
        precise double next = x + scalar * max(x, lowest) * (by * sensitivity);
        double after = sensitivity > 0.0lf ? (next < 0.0lf ? 0.0lf : next) : x;
#else
        // `precise` forbids fused steps, which would give other factors near 0 than the CPU computes
        precise double factor = 1.0lf + scalar * (by - sensitivity);
        double after = sensitivity > 0.0lf ? x * (factor < 0.0lf ? 0.0lf : factor) : x;
#endif
#endif
        y[at] = REAL(after);
    }
}
