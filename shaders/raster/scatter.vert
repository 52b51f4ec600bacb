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
#include "raster/macropixel.glsl"

layout(location = 0) flat out float out_value;

void main()
{
    ivec2 pixel = ivec2(gl_VertexID % tile_size.x, gl_VertexID / tile_size.x);
    Scattered at = scatter_pixel(images[gl_InstanceID], pixel);
    gl_PointSize = 1.0;
    gl_Position = vec4(2.0, 2.0, 2.0, 1.0); // clipped away
    if (at.value != 0.0) {
        gl_Position = vec4(2.0 * (vec2(at.texel) + 0.5) / vec2(lors_size) - 1.0, 0.0, 1.0);
    }
    out_value = at.value;
}
