#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// First run of the back-projection, cluster paper section IV: each output is the sum, over four pixels of the
// correspondence image, of weight times LOR value.
//
// reads:    correspondence atlas, images, LOR values, modules, crystal_module, pairs
// writes:   one sum per four pixels
// variants: RAYS=4; RAYS=1
#include "correspondence/scene.glsl"

#include "correspondence/lor.glsl"

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    ivec2 source_tile, target_tile; // texels
    int columns, num_images;        // tiles in a row of the atlas; images of the batch
    uint num_lors;                  // LORs of the window
};

layout(binding = LR_UNIT_CORRESPONDENCE) uniform usampler2D correspondence;
layout(binding = LR_UNIT_LORS) uniform sampler2D lors;

layout(location = 0) out float out_sum;

float pixel_product(ivec2 pixel, Image image)
{
    Module primary = modules[image.place.x];
    if (any(greaterThanEqual(pixel, primary.crystals.xy * RAYS))) return 0.0;
    uvec2 hit = texelFetch(correspondence, image.place.yz + pixel, 0).rg;
    if (hit.x == 0u) return 0.0;
    ivec2 pq = ivec2(uvec2(pixel) / uint(RAYS));
    uint other = crystal_module[hit.x - 1u];
    uint lor = lor_number(uint(image.place.x), uint(pq.y * primary.crystals.x + pq.x), other,
                          hit.x - 1u - uint(modules[other].crystals.z));
    if (lor >= num_lors) return 0.0;
    uint width = uint(textureSize(lors, 0).x);
    return uintBitsToFloat(hit.y) * texelFetch(lors, ivec2(lor % width, lor / width), 0).r;
}

void main()
{
    ivec2 at = ivec2(gl_FragCoord.xy);
    ivec2 tile = at / target_tile;
    ivec2 pixel = 2 * (at - tile * target_tile);
    int number = tile.y * columns + tile.x;
    out_sum = 0.0;
    if (number < num_images) {
        Image image = images[number];
        out_sum = (pixel_product(pixel, image) + pixel_product(pixel + ivec2(1, 0), image)) +
                  (pixel_product(pixel + ivec2(0, 1), image) + pixel_product(pixel + ivec2(1, 1), image));
    }
}
