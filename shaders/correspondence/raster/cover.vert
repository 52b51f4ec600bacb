#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Covers the viewport, for a pass over all texels of a texture.
//
// shape: triangle strip of 4 vertices

void main()
{
    gl_Position = vec4(2.0 * vec2(gl_VertexID & 1, gl_VertexID >> 1) - 1.0, 0.0, 1.0);
}
