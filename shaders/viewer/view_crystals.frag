#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Crystals on a module's front face, with gaps between them. A crystal with a value of at least 0 has the colour of
// this value; a crystal with a negative value has the module's colour.
//
// reads: modules and their colours; the values of the crystals
// writes: colour
#include "viewer/view.glsl"
#include "viewer/view_modules.glsl"

layout(std430, binding = 1) readonly buffer Colours
{
    uint colours[];
};
layout(std430, binding = 2) readonly buffer Values
{
    float values[];
};
layout(binding = 0) uniform sampler2D map;
layout(location = 0) flat in int in_module;
layout(location = 1) flat in float in_faces;
layout(location = 2) in vec2 in_at;
layout(location = 0) out vec4 out_colour;

void main()
{
    Module module = modules[in_module];
    ivec2 count = ivec2(module.centre.w, module.face.w), place = clamp(ivec2(in_at), ivec2(0), count - 1);
    vec2 off_mm = abs(in_at - vec2(place) - 0.5) * vec2(module.u.w, module.v.w);
    if (any(greaterThan(off_mm, 0.5 * module.face.xy))) discard;
    float value = values[int(module.normal.w) + place.y * count.x + place.x];
    vec3 colour = unpackUnorm4x8(colours[in_module]).abg;
    if (value >= 0.0) {
        colour = texture(map, vec2(value, 0.5)).rgb;
    } else {
        float checker = 0.06 * float((place.x + place.y) & 1);
        colour = colour * (in_module == shown.w ? 1.25 : 0.8) * (0.55 + 0.45 * in_faces) + checker;
    }
    out_colour = vec4(colour, 1.0);
}
