#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The faces of the image's box that are turned away from the eye. Lines of sight leave the box through these faces.
//
// writes: place on the face, mm
// shape:  12 triangles, two for each face
#include "viewer/view.glsl"

layout(location = 0) out vec3 out_at;

void main()
{
    int face = gl_VertexID / 6, corner = gl_VertexID % 6, axis = face >> 1, side = face & 1;
    ivec2 two = corner == 0                  ? ivec2(0)
                : corner == 1 || corner == 4 ? ivec2(1, 0)
                : corner == 2 || corner == 3 ? ivec2(0, 1)
                                             : ivec2(1);
    vec3 share;
    share[axis] = float(side);
    share[(axis + 1) % 3] = float(two.x);
    share[(axis + 2) % 3] = float(two.y);
    out_at = mix(low_mm.xyz, high_mm.xyz, share);
    bool leaves = side == 1 ? eye[axis] < high_mm[axis] : eye[axis] > low_mm[axis];
    gl_Position = leaves ? clip_of_world * vec4(out_at, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
}
