#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Finds the largest term of lines whose values are larger than usual, with exact elements (listmode/bound.comp).
//
// reads: lines of listmode/exact_prepare.comp with their values; lines with other values have
//            no planes
// writes: scale.largest_term
// shape: a group processes its lines one after another; each thread takes some of the planes; few
//            groups have lines
// variants: TOF=1; LEANING=1; LEANING=1 TOF=1; TOF=1 BINS=1
#define LINES_ACCESS readonly
#define PLANES planes
ivec2 planes; // the thread's planes of the current line

#include "listmode/exact.glsl"
#include "listmode/scale.glsl"

layout(local_size_x = LR_EVENTS_EXACT_GROUP) in;

shared ivec2 all_planes[LR_EVENTS_EXACT_GROUP]; // planes of each line, within the window

float most; // largest contribution of a point in these planes

void take(ivec3 voxel, float element)
{
    most = max(most, element);
}

ivec2 planes_of(uint k)
{
    uvec4 way = k < uint(size.w) ? lines[2u * uint(size.w) + k] : uvec4(0u);
    return ivec2(max(int(way.x), window.x), min(int(way.x + way.y), window.y));
}

// Notes a bound for the terms of line k: a voxel's element is at most the number of its points times the largest
// contribution of a point.
void note(uint k)
{
    most *= float(slab.x * slab.y * slab.z);
    uint exponent = exponent_of(uintBitsToFloat(lines[2u * uint(size.w) + k].w)) + exponent_of(most);
    if (most > 0.0) atomicMax(largest_term, exponent + uint(LR_EVENTS_EXPONENT - 2 * 126));
}

void main()
{
    uint first = gl_WorkGroupID.x * LR_EVENTS_EXACT_GROUP;
    int own = int(gl_LocalInvocationIndex);
    all_planes[own] = planes_of(first + gl_LocalInvocationIndex);
    barrier();
    for (uint n = 0u; n < LR_EVENTS_EXACT_GROUP; n++) {
        ivec2 all = all_planes[n];
        int count = all.y - all.x;
        if (count > 0) {
            planes = all.x + ivec2(count * own, count * (own + 1)) / LR_EVENTS_EXACT_GROUP;
            most = 0.0;
            each_element(first + n);
            note(first + n);
        }
    }
}
