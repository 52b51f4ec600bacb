#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Adds up the sums of a pass's groups.
//
// reads: the groups' sums; first.y: 1 to add them to the earlier sums; first.z: 1 if the sums
//            from LR_VECTOR_LARGEST on are maxima
// writes: sums over all groups
// shape: one group; each of its threads takes every n-th of `count` groups
// invariant: terms are added in a fixed order
#include "vector/vector_sums.glsl"

layout(std430, binding = LR_BIND_VECTOR_Y) readonly buffer Groups
{
    double of_group[]; // [count][LR_VECTOR_NUM_SUMS]
};

void main()
{
    const double lowest_number = packDouble2x32(uvec2(0u, 0xfff00000u)); // -infinity
    uint thread = gl_LocalInvocationID.x;
    for (uint which = 0u; which < uint(LR_VECTOR_NUM_SUMS); which++) {
        bool largest = first.z != 0u && which >= uint(LR_VECTOR_LARGEST);
        double value = largest ? lowest_number : 0.0lf;
        if (first.y != 0u && thread == 0u) value = sums[which];
        for (uint group = thread; group < count; group += uint(LR_VECTOR_GROUP)) {
            double more = of_group[group * uint(LR_VECTOR_NUM_SUMS) + which];
            value = largest ? max(value, more) : value + more;
        }
        write_sum(which, value, largest);
    }
}
