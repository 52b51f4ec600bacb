#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Back-projection, cluster paper section IV: adds up weight times LOR value over the pixels of each
// correspondence image.
//
// reads:    correspondence atlas, images, LOR values, modules, crystal_module, pairs
// writes:   one sum per image, at its place among the atlas' tiles
// shape:    one group an image
// invariant: sums are added in a fixed order
// variants: RAYS=4; RAYS=1
#include "common/scene.glsl"
#include "common/lor.glsl"

#ifndef RAYS
#define RAYS 4
#endif

const int GROUP = 256;
layout(local_size_x = GROUP) in;

layout(std140, binding = LR_BIND_PASS) uniform Pass {
    ivec2 tile_size; // of the atlas, texels
    ivec2 lors_size; // texels of the LOR window's texture
    uint num_lors;   // in the LOR window
};

layout(binding = LR_UNIT_CORRESPONDENCE) uniform usampler2D correspondence;
layout(binding = LR_UNIT_LORS) uniform sampler2D lors;
layout(r32f, binding = LR_IMAGE_SUMS) uniform writeonly image2D sums;

shared float partial[GROUP];

float pixel_product(ivec2 pixel, Image image, Module primary)
{
    uvec2 hit = texelFetch(correspondence, image.place.yz + pixel, 0).rg;
    if (hit.x == 0u) {
        return 0.0;
    }
    ivec2 pq = ivec2(uvec2(pixel) / uint(RAYS));
    uint other = crystal_module[hit.x - 1u];
    uint lor = lor_number(uint(image.place.x), uint(pq.y * primary.crystals.x + pq.x), other,
                          hit.x - 1u - uint(modules[other].crystals.z));
    if (lor >= num_lors) {
        return 0.0;
    }
    ivec2 texel = ivec2(lor % uint(lors_size.x), lor / uint(lors_size.x));
    return uintBitsToFloat(hit.y) * texelFetch(lors, texel, 0).r;
}

void main()
{
    Image image = images[gl_WorkGroupID.x];
    Module primary = modules[image.place.x];
    int thread = int(gl_LocalInvocationIndex);
    ivec2 pixels = primary.crystals.xy * RAYS;
    float sum = 0.0;
    for (int k = thread; k < pixels.x * pixels.y; k += GROUP) {
        sum += pixel_product(ivec2(k % pixels.x, k / pixels.x), image, primary);
    }
    partial[thread] = sum;
    barrier();
    for (int half_way = GROUP / 2; half_way > 0; half_way /= 2) {
        if (thread < half_way) {
            partial[thread] += partial[thread + half_way];
        }
        barrier();
    }
    if (thread == 0) {
        imageStore(sums, image.place.yz / tile_size, vec4(partial[0]));
    }
}
