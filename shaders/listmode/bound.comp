#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Finds the largest term of lines whose values are larger than usual. An event that sees almost nothing of the image
// has a large value, but no large terms. If the bound is tight, more bits are left for the sums.
//
// reads: lines with their values; lines with other values have no slices
// writes: scale.largest_term
// shape: one thread for each line
// variants: TOF=1; LINE=1; TABLE=1; AS_PAPER=1; AS_PAPER=1 TOF=1; TOF=1 BINS=1; AS_PAPER=1 TOF=1 BINS=1
#define LINES_ACCESS readonly
#include "listmode/kernel.glsl"
#include "listmode/largest.glsl"
#include "listmode/scale.glsl"

layout(local_size_x = LR_EVENTS_GROUP) in;

void main()
{
    uint k = gl_GlobalInvocationID.x;
    if (k >= uint(size.w)) return;
    uvec4 way = lines[2u * uint(size.w) + k];
    int from = max(window.x - int(way.x), 0), to = min(window.y - int(way.x), int(way.y));
    if (from >= to) return;
    Line line = line_of(k);
    Kernel kernel = kernel_of(line);
    float most = 0.0;
    for (int j = from; j < to; j++) most = max(most, largest_of(line, kernel, j));
    uint exponent = exponent_of(uintBitsToFloat(way.w)) + exponent_of(most);
    if (most > 0.0) atomicMax(largest_term, exponent + uint(LR_EVENTS_EXPONENT - 2 * 126));
}
