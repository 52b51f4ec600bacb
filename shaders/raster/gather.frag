#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Back-projection, cluster paper section IV, first halving: weight times the LOR's value, four
// pixels of the correspondence image added.
//
// reads:    correspondence atlas, LOR values, modules, crystal_module, pairs
// writes:   one sum per four pixels
// variants: RAYS=4; RAYS=1
#include "common/scene.glsl"
#include "raster/tile_pass.glsl"
#include "common/lor.glsl"

#ifndef RAYS
#define RAYS 4
#endif

layout(binding = LR_UNIT_CORRESPONDENCE) uniform usampler2D correspondence;
layout(binding = LR_UNIT_LORS) uniform sampler2D lors;

layout(location = 0) flat in ivec2 in_source_at;
layout(location = 1) flat in ivec2 in_target_at;
layout(location = 2) flat in int in_primary;

layout(location = 0) out float out_sum;

float pixel_product(ivec2 pixel, Module primary)
{
    if (any(greaterThanEqual(pixel, primary.crystals.xy * RAYS))) {
        return 0.0;
    }
    uvec2 hit = texelFetch(correspondence, in_source_at + pixel, 0).rg;
    if (hit.x == 0u) {
        return 0.0;
    }
    ivec2 pq = pixel / RAYS;
    uint other = crystal_module[hit.x - 1u];
    uint lor = lor_number(uint(in_primary), uint(pq.y * primary.crystals.x + pq.x), other,
                          hit.x - 1u - uint(modules[other].crystals.z));
    if (lor >= num_lors) {
        return 0.0;
    }
    ivec2 texel = ivec2(lor % uint(lors_size.x), lor / uint(lors_size.x));
    return uintBitsToFloat(hit.y) * texelFetch(lors, texel, 0).r;
}

void main()
{
    Module primary = modules[in_primary];
    ivec2 pixel = 2 * (ivec2(gl_FragCoord.xy) - in_target_at);
    out_sum = (pixel_product(pixel, primary) + pixel_product(pixel + ivec2(1, 0), primary)) +
              (pixel_product(pixel + ivec2(0, 1), primary) +
               pixel_product(pixel + ivec2(1, 1), primary));
}
