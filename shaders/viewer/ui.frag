#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Colour times texture, of the viewer's panels.
layout(std140, binding = 0) uniform Screen {
    vec2 scale;
    vec2 origin;
    int first;
    int is_grey;
};
layout(binding = 0) uniform sampler2D picture;
layout(location = 0) in vec4 in_colour;
layout(location = 1) in vec2 in_at;
layout(location = 0) out vec4 out_colour;

void main()
{
    vec4 texel = texture(picture, in_at);
    out_colour = in_colour * (is_grey != 0 ? vec4(1.0, 1.0, 1.0, texel.r) : texel);
}
