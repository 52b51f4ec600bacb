#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Lists the elements of events.
//
// reads:     lines
// writes:    for each line its number of elements, then the elements: voxel and value
// shape:     one thread for each line
// variants: TOF=1; LINE=1; TABLE=1; AS_PAPER=1; AS_PAPER=1 TOF=1; TOF=1 BINS=1; AS_PAPER=1 TOF=1 BINS=1
#define LINES_ACCESS readonly
#include "listmode/kernel.glsl"

layout(local_size_x = LR_EVENTS_GROUP) in;

layout(std430, binding = LR_BIND_LIST_ELEMENTS) writeonly buffer Elements
{
    uvec2 elements[]; // [lines][1 + slab.w], from window.w on
};

// Lists the elements of slice j, after the `count` elements that are already in the list.
void list_slice(uint first, inout uint count, Line line, Kernel kernel, int j)
{
    Box box = box_of(line, kernel, j);
    float factor = slice_factor(line, j);
#if NORMALISED
    float sum = sum_of_shares(kernel, box);
    factor = sum > 0.0 ? factor / sum : 0.0;
#endif
    for (int v = 0; v < kernel.width.y; v++) {
        Row shares = row_of(kernel, box, v);
        for (int u = 0; u < kernel.width.x; u++) {
            ivec3 at = ivec3(line.first + j, box.low.x + u, box.low.y + v);
            float element = factor * share_of(kernel, shares, u);
            if (element > 0.0 && uint(at.y) < uint(size.y) && uint(at.z) < uint(size.z) && count < uint(slab.w)) {
                int voxel = at.x * strides.x + at.y * strides.y + at.z * strides.z;
                count++;
                elements[first + count] = uvec2(voxel, floatBitsToUint(element));
            }
        }
    }
}

void main()
{
    uint k = gl_GlobalInvocationID.x, count = 0u;
    if (k >= uint(size.w)) return;
    uint first = uint(window.w) + k * uint(slab.w + 1);
    Line line = line_of(k);
    if (line.count > 0) {
        Kernel kernel = kernel_of(line);
        int from = max(window.x - line.first, 0), to = min(window.y - line.first, line.count);
        for (int j = from; j < to; j++) list_slice(first, count, line, kernel, j);
    }
    elements[first] = uvec2(count, 0u);
}
