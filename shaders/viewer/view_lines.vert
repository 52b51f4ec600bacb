#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Straight lines between two points.
//
// reads: lines, seven words each: from, to, colour 0xRRGGBBAA
// writes: colour
// shape: lines
#include "viewer/view.glsl"

layout(std430, binding = 0) readonly buffer Lines
{
    float lines[];
};
layout(location = 0) flat out vec4 out_colour;

void main()
{
    int at = 7 * (gl_VertexID >> 1), end = at + 3 * (gl_VertexID & 1);
    out_colour = unpackUnorm4x8(floatBitsToUint(lines[at + 6])).abgr;
    gl_Position = clip_of_world * vec4(lines[end], lines[end + 1], lines[end + 2], 1.0);
}
