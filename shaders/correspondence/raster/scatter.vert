#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Forward projection, cluster paper section III: the vertex shader visits all pixels of the correspondence images, and
// emits a point at the texel of the pixel's LOR. The point's value is the LOR's summed weight in the macropixel, times
// x_v / N.
//
// reads:  correspondence atlas, images, voxels, modules, crystal_module, pairs
// writes: one point for each distinct (r, s) of a macropixel (section II.C); the first pixel with
//         this (r, s) adds up the weights
// shape:  points, one vertex per pixel of the largest window, one instance per image
// variants: RAYS=4; RAYS=1
#include "correspondence/scene.glsl"

#include "correspondence/lor.glsl"

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    ivec2 tile_size; // size of the largest window, pixels
    ivec2 lors_size; // texels of the LOR window's texture
    uint num_lors;   // LORs of the window
    float factor;    // 1 / N, where N is the number of sample points of a voxel
};

layout(binding = LR_UNIT_CORRESPONDENCE) uniform usampler2D correspondence;
layout(binding = LR_UNIT_VOXELS) uniform sampler2D voxels;

layout(location = 0) flat out float out_value;

// The sum over the macropixel's pixels that have this pixel's crystal; 0 if an earlier pixel has the same crystal.
float macropixel_sum(ivec2 macropixel, int mine, uint crystal)
{
    float sum = 0.0;
    for (int k = 0; k < RAYS * RAYS; k++) {
        uvec2 hit = texelFetch(correspondence, macropixel + ivec2(k % RAYS, k / RAYS), 0).rg;
        if (hit.x == crystal) {
            if (k < mine) return 0.0;
            sum += uintBitsToFloat(hit.y);
        }
    }
    return sum;
}

void main()
{
    gl_PointSize = 1.0;
    gl_Position = vec4(2.0, 2.0, 2.0, 1.0); // outside the window, so that the point is clipped
    out_value = 0.0;
    ivec2 pixel = ivec2(gl_VertexID % tile_size.x, gl_VertexID / tile_size.x);
    Image image = images[gl_InstanceID];
    Module primary = modules[image.place.x];
    if (any(greaterThanEqual(pixel, primary.crystals.xy * RAYS))) return;
    uint crystal = texelFetch(correspondence, image.place.yz + pixel, 0).r;
    if (crystal == 0u) return;
    ivec2 pq = pixel / RAYS;
    ivec2 within = pixel - pq * RAYS;
    uint other = crystal_module[crystal - 1u];
    uint lor = lor_number(uint(image.place.x), uint(pq.y * primary.crystals.x + pq.x), other,
                          crystal - 1u - uint(modules[other].crystals.z));
    if (lor >= num_lors) return;
    uint width = uint(textureSize(voxels, 0).x);
    float voxel = texelFetch(voxels, ivec2(image.row % width, image.row / width), 0).r;
    out_value = macropixel_sum(image.place.yz + pq * RAYS, within.y * RAYS + within.x, crystal) * (factor * voxel);
    if (out_value != 0.0) {
        ivec2 texel = ivec2(lor % uint(lors_size.x), lor / uint(lors_size.x));
        gl_Position = vec4(2.0 * (vec2(texel) + 0.5) / vec2(lors_size) - 1.0, 0.0, 1.0);
    }
}
