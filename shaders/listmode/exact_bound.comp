#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The largest terms of lines whose values are larger than usual, as listmode/bound.comp has them, by exact
// elements.
//
// reads:     lines of listmode/exact_prepare.comp with their values, of which the others have no planes
// writes:    scale.largest_term
// shape:     one thread a line
// variants: TOF=1; LEANING=1; LEANING=1 TOF=1
#define LINES_ACCESS readonly
#include "listmode/exact.glsl"
#include "listmode/scale.glsl"

layout(local_size_x = LR_EVENTS_EXACT_GROUP) in;

float most = 0.0; // of all shares

void take(ivec3 voxel, float element)
{
    most = max(most, element);
}

// No voxel's element is larger than its points' number times the largest share.
void main()
{
    uint k = gl_GlobalInvocationID.x;
    if (k >= uint(size.w)) {
        return;
    }
    each_element(k);
    most *= float(slab.x * slab.y * slab.z);
    uint exponent = exponent_of(uintBitsToFloat(lines[2u * uint(size.w) + k].w)) + exponent_of(most);
    if (most > 0.0) {
        atomicMax(largest_term, exponent + uint(LR_EVENTS_EXPONENT - 2 * 126));
    }
}
