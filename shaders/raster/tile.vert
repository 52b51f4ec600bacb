#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Covers, for every image, its tile in a reduced atlas.
//
// reads:  images
// writes: one rectangle per image, and where its tiles are in the source and in the target
// shape:  triangle strip of 4 vertices, one instance per image
#include "common/scene.glsl"
#include "raster/tile_pass.glsl"

layout(location = 0) flat out ivec2 out_source_at;
layout(location = 1) flat out ivec2 out_target_at;
layout(location = 2) flat out int out_primary;

void main()
{
    Image image = images[gl_InstanceID];
    ivec2 slot = image.place.yz / full_tile;
    out_source_at = slot * source_tile;
    out_target_at = slot * target_tile;
    out_primary = image.place.x;
    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
    vec2 texel = vec2(out_target_at) + corner * vec2(target_tile);
    gl_Position = vec4(2.0 * texel / vec2(target_size) - 1.0, 0.0, 1.0);
}
