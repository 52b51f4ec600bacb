#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Front faces of modules. A module that turns its back to the eye is not drawn, because it would hide the inside of the
// scanner.
//
// reads: modules
// writes: number of the module; cosine of the angle between its normal and the direction to the eye; position on
//         the face, counted in crystals
// shape: triangle strips of four vertices; one instance for each module
#include "viewer/view.glsl"
#include "viewer/view_modules.glsl"

layout(location = 0) flat out int out_module;
layout(location = 1) flat out float out_faces;
layout(location = 2) out vec2 out_at;

void main()
{
    Module module = modules[gl_InstanceID];
    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1), count = vec2(module.centre.w, module.face.w);
    vec2 at_mm = (corner - 0.5) * count * vec2(module.u.w, module.v.w);
    vec3 point = module.centre.xyz + at_mm.x * module.u.xyz + at_mm.y * module.v.xyz;
    out_module = gl_InstanceID;
    out_faces = dot(normalize(eye.xyz - module.centre.xyz), module.normal.xyz);
    out_at = corner * count;
    gl_Position = out_faces > 0.0 ? clip_of_world * vec4(point, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
}
