#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Converts LOR values between LOR order and the order of the column passes.
//
// reads:    column modules and pairs, LOR values in one order
// writes:   LOR values in the other order (TO_LOR_ORDER: in LOR order)
// shape:    groups (values of a pair / group size, 1, pairs of modules)
// variants: ; TO_LOR_ORDER=1
#include "correspondence/columns/scene.glsl"

layout(std430, binding = LR_BIND_SUMS) readonly buffer From
{
    float from[];
};
layout(std430, binding = LR_BIND_OUTPUT) writeonly buffer To
{
    float to[];
};

void main()
{
    ColumnPair pair = column_pairs[first.x + int(gl_WorkGroupID.z)];
    ivec4 i = column_modules[pair.i].counts, j = column_modules[pair.j].counts;
    int num_axial = i.y * j.y, num_b = j.x * j.y;
    for (int k = int(gl_GlobalInvocationID.x); k < i.x * i.y * num_b; k += int(gl_NumWorkGroups.x) * COLUMN_GROUP) {
        int pr = k / num_axial, qs = k % num_axial;
        int a = pr / j.x * i.z + qs / j.y * i.w;
        int b = pr % j.x * j.z + qs % j.y * j.w;
        uint by_lor = pair.first + uint(a * num_b + b), column = pair.first + uint(k);
#ifdef TO_LOR_ORDER
        to[by_lor] = from[column];
#else
        to[column] = from[by_lor];
#endif
    }
}
