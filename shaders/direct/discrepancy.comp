#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Replaces a view's estimate by its discrepancy from the counts, which is then back-projected
// (docs/method/direct.md, "Updates").
//
// reads:  the estimate K x; counts, additive term, factors, without margins
// writes: n (y / (n K x + b) - 1), n y / (n K x + b), or n
// shape:  one thread for each texel
// variants: ADDITIVE=1; FACTORS=1; ADDITIVE=1 FACTORS=1; BUFFERS=1
#include "direct/direct.glsl"

layout(binding = LR_UNIT_DIRECT_COUNTS) uniform sampler3D counts_of;
layout(binding = LR_UNIT_DIRECT_ADDITIVE) uniform sampler3D additive_of;
layout(binding = LR_UNIT_DIRECT_FACTORS) uniform sampler3D factors_of;

void main()
{
    ivec3 texel;
    if (!find_texel(texel)) return;
    vec4 factors = vec4(1.0), expected = vec4(0.0);
    if (counts.x != LR_DIRECT_DO_SENSITIVITY) expected = load_target(texel);
#ifdef FACTORS
    factors = texelFetch(factors_of, texel, 0);
    expected *= factors;
#endif
#ifdef ADDITIVE
    expected += texelFetch(additive_of, texel, 0);
#endif
    vec4 result = factors;
    if (counts.x != LR_DIRECT_DO_SENSITIVITY) {
        bvec4 some = greaterThan(expected, vec4(1e-30));
        vec4 ratio = texelFetch(counts_of, texel, 0) / mix(vec4(1.0), expected, some);
        ratio -= counts.x == LR_DIRECT_DO_RAMLA ? 1.0 : 0.0;
        result *= mix(vec4(0.0), ratio, some);
    }
    store_target(texel, within_grid(result, texel.x));
}
