#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Forward projection, cluster paper section III: visits a correspondence image, adds up the equal
// (r, s) of a macropixel once, and emits a point at that LOR's texel.
//
// reads:  correspondence atlas, images, modules, crystal_module, pairs
// writes: one point per distinct LOR of each macropixel, its weight times the image's factor
// shape:  points, one vertex per pixel of the largest window, one instance per image
// variants: RAYS=4; RAYS=1
#include "common/scene.glsl"
#include "common/lor.glsl"

#ifndef RAYS
#define RAYS 4
#endif

layout(std140, binding = LR_BIND_PASS) uniform Pass {
    ivec2 tile_size;   // of the largest window, pixels
    ivec2 lors_size;   // texels of the LOR window's texture
    uint num_lors;     // in the LOR window
};

layout(binding = LR_UNIT_CORRESPONDENCE) uniform usampler2D correspondence;

layout(location = 0) flat out float out_value;

// Sum of the macropixel's pixels with this pixel's crystal; 0 when an earlier pixel has it.
float macropixel_sum(ivec2 macropixel, int mine, uint crystal)
{
    float sum = 0.0;
    for (int k = 0; k < RAYS * RAYS; k++) {
        uvec2 hit = texelFetch(correspondence, macropixel + ivec2(k % RAYS, k / RAYS), 0).rg;
        if (hit.x == crystal) {
            if (k < mine) {
                return 0.0;
            }
            sum += uintBitsToFloat(hit.y);
        }
    }
    return sum;
}

void main()
{
    Image image = images[gl_InstanceID];
    Module primary = modules[image.place.x];
    ivec2 pixel = ivec2(gl_VertexID % tile_size.x, gl_VertexID / tile_size.x);
    gl_Position = vec4(2.0, 2.0, 2.0, 1.0); // clipped away
    gl_PointSize = 1.0;
    out_value = 0.0;
    if (any(greaterThanEqual(pixel, primary.crystals.xy * RAYS))) {
        return;
    }
    uint crystal = texelFetch(correspondence, image.place.yz + pixel, 0).r;
    if (crystal == 0u) {
        return;
    }
    ivec2 pq = pixel / RAYS;
    ivec2 within = pixel - pq * RAYS;
    float sum = macropixel_sum(image.place.yz + pq * RAYS, within.y * RAYS + within.x, crystal);
    uint other = crystal_module[crystal - 1u];
    uint lor = lor_number(uint(image.place.x), uint(pq.y * primary.crystals.x + pq.x), other,
                          crystal - 1u - uint(modules[other].crystals.z));
    if (sum == 0.0 || lor >= num_lors) {
        return;
    }
    vec2 texel = vec2(lor % uint(lors_size.x), lor / uint(lors_size.x)) + 0.5;
    gl_Position = vec4(2.0 * texel / vec2(lors_size) - 1.0, 0.0, 1.0);
    out_value = sum * image.point_scale.w;
}
