#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The twelve edges of each module's box: bright if the module faces the eye, else dim.
//
// reads:  modules and their colours
// writes: colour
// shape:  12 lines; one instance for each module
#include "viewer/view.glsl"
#include "viewer/view_modules.glsl"

layout(std430, binding = 1) readonly buffer Colours
{
    uint colours[];
};
layout(location = 0) flat out vec3 out_colour;

void main()
{
    Module module = modules[gl_InstanceID];
    int edge = gl_VertexID >> 1, along = edge >> 2, others = edge & 3;
    bvec3 far = bvec3(others & 1, others & 2, gl_VertexID & 1);
    far = along == 0 ? far.zxy : along == 1 ? far.xzy : far;
    vec2 half_size = 0.5 * vec2(module.centre.w * module.u.w, module.face.w * module.v.w);
    vec3 point = module.centre.xyz + (far.x ? half_size.x : -half_size.x) * module.u.xyz +
                 (far.y ? half_size.y : -half_size.y) * module.v.xyz -
                 (far.z ? module.face.z : 0.0) * module.normal.xyz;
    float faces = dot(normalize(eye.xyz - module.centre.xyz), module.normal.xyz);
    bool is_hovered = gl_InstanceID == shown.w;
    vec3 colour = unpackUnorm4x8(colours[gl_InstanceID]).abg;
    out_colour = colour * (is_hovered ? 1.6 : faces > 0.0 ? 0.9 : 0.35);
    gl_Position = clip_of_world * vec4(point, 1.0);
}
