#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Forward projection in one pass: adds every element times the image's factor to the element's LOR.
//
// reads: images, draws, scanner, masks, attenuation map
// writes: LOR values of the window, by atomic addition, so that the order of a sum's terms varies
// shape: one group for each image
// variants: RAYS=4; EXACT=1; EXACT=1 HIDING=1; RAYS=4 HIDING=1 LIMITED_LOOPS=1; RAYS=3 ABSORPTION=1; EXACT=1 ABSORPTION=1
// variants: EXACT=1 HIDING=1 ABSORPTION=1; PENETRATION=1; PENETRATION=1 ABSORPTION=1
#include "common/atomic.glsl"
#include "correspondence/visit.glsl"

layout(std430, binding = LR_BIND_OUTPUT) buffer Lors
{
    LR_ATOMIC lors[];
};

void emit(uint lor, float weight)
{
    if (lor < num_lors) {
        float term = weight * images[gl_WorkGroupID.x].point_scale.w;
        LR_ATOMIC_ADD(lors[lor], term);
    }
}

void main()
{
    visit_image(gl_WorkGroupID.x);
}
