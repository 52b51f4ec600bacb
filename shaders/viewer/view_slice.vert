#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The rectangle of a slice that is perpendicular to axis shown.x.
//
// writes: place within the image, 0 .. 1
// shape:  triangle strip of four vertices
#include "viewer/view.glsl"

layout(location = 0) out vec3 out_at;

void main()
{
    int axis = shown.x;
    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
    vec3 size = high_mm.xyz - low_mm.xyz;
    float depth = (overlay[1 + axis] - low_mm[axis]) / size[axis];
    out_at = axis == 0 ? vec3(depth, corner) : axis == 1 ? vec3(corner.x, depth, corner.y) : vec3(corner, depth);
    gl_Position = clip_of_world * vec4(low_mm.xyz + out_at * size, 1.0);
}
