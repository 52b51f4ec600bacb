#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Back-projection in one pass: adds up every element of an image times the value of the element's LOR.
//
// reads:     images, draws, scanner, masks, attenuation map, LOR values of the window
// writes:    one sum for each image
// shape:     one group for each image
// invariant: sums are added in a fixed order
// variants:  RAYS=4; EXACT=1; EXACT=1 HIDING=1; RAYS=4 HIDING=1 LIMITED_LOOPS=1; RAYS=3 ABSORPTION=1
// variants:  PENETRATION=1; PENETRATION=1 ABSORPTION=1
#include "correspondence/visit.glsl"

layout(std430, binding = LR_BIND_OUTPUT) readonly buffer Lors
{
    float lors[];
};
layout(std430, binding = LR_BIND_SUMS) writeonly buffer Sums
{
    float sums[];
};

shared float partial[LR_GROUP_SIZE];
float mine;

void emit(uint lor, float weight)
{
    if (lor < num_lors) mine += weight * lors[lor];
}

void main()
{
    mine = 0.0;
    visit_image(gl_WorkGroupID.x);
    uint k = gl_LocalInvocationIndex;
    partial[k] = mine;
    for (uint half_size = LR_GROUP_SIZE / 2; half_size > 0u; half_size /= 2u) {
        barrier();
        if (k < half_size) partial[k] += partial[k + half_size];
    }
    if (k == 0u) sums[gl_WorkGroupID.x] = partial[0];
}
