// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sums in double over all threads of a group, in a fixed order.
#include "vector/vector.glsl"

layout(std430, binding = LR_BIND_VECTOR_SUMS) buffer Sums
{
    double sums[]; // [groups][LR_VECTOR_NUM_SUMS]
};

shared double parts[LR_VECTOR_GROUP];

// Writes one of a group's results: the sum of the threads' values, or their maximum if `largest` is true.
void write_sum(uint which, double value, bool largest)
{
    barrier();
    parts[gl_LocalInvocationID.x] = value;
    for (uint half_way = uint(LR_VECTOR_GROUP) / 2u; half_way > 0u; half_way /= 2u) {
        barrier();
        if (gl_LocalInvocationID.x < half_way) {
            double a = parts[gl_LocalInvocationID.x];
            double b = parts[gl_LocalInvocationID.x + half_way];
            parts[gl_LocalInvocationID.x] = largest ? max(a, b) : a + b;
        }
    }
    if (gl_LocalInvocationID.x == 0u) sums[gl_WorkGroupID.x * uint(LR_VECTOR_NUM_SUMS) + which] = parts[0];
}
