#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Updates the image with a back-projection, or adds up back-projections.
//
// reads:  a back-projection, and the sensitivity for EM; both with margins
// writes: x (1 + lambda c), x c / s if s > 0, or x + c
// shape:  one thread for each texel
// variants: BUFFERS=1
#include "direct/direct.glsl"

#ifdef BUFFERS
layout(std430, binding = LR_BIND_DIRECT_SENSITIVITY) readonly buffer Sensitivity
{
    vec4 sensitivity[];
};
#else
layout(binding = LR_UNIT_DIRECT_FACTORS) uniform sampler3D sensitivity;
#endif

vec4 load_sensitivity(ivec3 texel)
{
#ifdef BUFFERS
    return sensitivity[place_of(texel)];
#else
    return texelFetch(sensitivity, texel + margin.xyz, 0);
#endif
}

void main()
{
    ivec3 texel;
    if (!find_texel(texel)) return;
    vec4 x = load_target(texel), c = load_source(texel);
    if (counts.x == LR_DIRECT_DO_RAMLA) {
        x *= max(1.0 + intBitsToFloat(counts.y) * c, 0.0);
    } else if (counts.x == LR_DIRECT_DO_EM) {
        vec4 s = load_sensitivity(texel);
        bvec4 some = greaterThan(s, vec4(1e-30));
        x *= mix(vec4(1.0), c / mix(vec4(1.0), s, some), some);
    } else {
        x += c;
    }
    store_target(texel, x);
}
