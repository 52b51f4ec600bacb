#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Lists the exact elements of events. A voxel is listed once for each of its sample points that
// contribute to the element.
//
// reads:     lines of listmode/exact_prepare.comp
// writes:    for each line its number of shares, then the shares: voxel and value
// shape:     one thread for each line
// variants: TOF=1; LEANING=1; LEANING=1 TOF=1; TOF=1 BINS=1
#define LINES_ACCESS readonly
#include "listmode/exact.glsl"

layout(local_size_x = LR_EVENTS_EXACT_GROUP) in;

layout(std430, binding = LR_BIND_LIST_ELEMENTS) writeonly buffer Elements
{
    uvec2 elements[]; // [lines][1 + slab.w], from window.w on
};

uint first, count = 0u; // index of the line's list, and its length

void take(ivec3 voxel, float element)
{
    if (element > 0.0 && count < uint(slab.w)) {
        ivec3 at = voxel * strides.xyz;
        count++;
        elements[first + count] = uvec2(at.x + at.y + at.z, floatBitsToUint(element));
    }
}

void main()
{
    uint k = gl_GlobalInvocationID.x;
    if (k >= uint(size.w)) return;
    first = uint(window.w) + k * uint(slab.w + 1);
    each_element(k);
    elements[first] = uvec2(count, 0u);
}
