#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Triangles of the viewer's panels.
//
// reads:  corners, five words each: place in pixels from the upper left, texture coordinates, colour
//         of four bytes, red first
// writes: colour and texture coordinates
// shape:  triangles, corners by index
layout(std430, binding = 0) readonly buffer Corners {
    float corners[];
};
layout(std140, binding = 0) uniform Screen {
    vec2 scale;  // from pixels to clip space
    vec2 origin; // the pixel at the upper left
    int first;   // corner that index 0 means
    int is_grey; // the texture holds coverage only
};
layout(location = 0) out vec4 out_colour;
layout(location = 1) out vec2 out_at;

void main()
{
    int k = 5 * (first + gl_VertexID);
    vec2 place = (vec2(corners[k], corners[k + 1]) - origin) * scale;
    out_at = vec2(corners[k + 2], corners[k + 3]);
    out_colour = unpackUnorm4x8(floatBitsToUint(corners[k + 4]));
    gl_Position = vec4(place.x - 1.0, 1.0 - place.y, 0.0, 1.0);
}
