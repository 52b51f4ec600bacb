#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Forward projection in one pass: every element times the image's factor is added to its LOR.
//
// reads:    images, draws, scanner, masks, attenuation map
// writes:   LOR values of the window, by atomic addition: the order of a sum varies, unless sums are
//           in fixed point (FIXED)
// shape:    one group an image
// variants: RAYS=4; EXACT=1; EXACT=1 HIDING=1; RAYS=4 HIDING=1 LIMITED_LOOPS=1; RAYS=3 ABSORPTION=1; EXACT=1 ABSORPTION=1;
//           FIXED=1 RAYS=2
// variants: EXACT=1 HIDING=1 ABSORPTION=1; PENETRATION=1; PENETRATION=1 ABSORPTION=1
#include "common/atomic.glsl"
#include "common/visit.glsl"

#ifdef FIXED
#define FIXED_BINDING LR_BIND_OUTPUT
#include "common/fixed.glsl"
#else
layout(std430, binding = LR_BIND_OUTPUT) buffer Lors {
    LR_ATOMIC lors[];
};
#endif

void emit(uint lor, float weight)
{
    if (lor < num_lors) {
        float term = weight * images[gl_WorkGroupID.x].point_scale.w;
#ifdef FIXED
        fixed_add(lor, term * fixed_scale);
#else
        LR_ATOMIC_ADD(lors[lor], term);
#endif
    }
}

void main()
{
    visit_image(gl_WorkGroupID.x);
}
