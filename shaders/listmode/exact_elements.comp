#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The exact elements of events one by one: a voxel comes once for each of its points that have a share.
//
// reads:     lines of listmode/exact_prepare.comp
// writes:    for each line how many shares it has, then the shares: voxel and value
// shape:     one thread a line
// variants: TOF=1; LEANING=1; LEANING=1 TOF=1
#define LINES_ACCESS readonly
#include "listmode/exact.glsl"

layout(local_size_x = LR_EVENTS_EXACT_GROUP) in;

layout(std430, binding = LR_BIND_LIST_ELEMENTS) writeonly buffer Elements {
    uvec2 elements[]; // [lines][1 + room], from window.w on
};

void main()
{
    uint k = gl_GlobalInvocationID.x, count = 0u, room = uint(slab.w);
    if (k >= uint(size.w)) {
        return;
    }
    uint first = uint(window.w) + k * (room + 1u);
    Exact exact = exact_of(k);
    while (next(exact)) {
        if (exact.element > 0.0 && count < room) {
            ivec3 at = exact.voxel * strides.xyz;
            count++;
            elements[first + count] = uvec2(at.x + at.y + at.z, floatBitsToUint(exact.element));
        }
    }
    elements[first] = uvec2(count, 0u);
}
