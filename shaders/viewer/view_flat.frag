#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Lines with one colour each, without transparency.
layout(location = 0) flat in vec3 in_colour;
layout(location = 0) out vec4 out_colour;

void main()
{
    out_colour = vec4(in_colour, 1.0);
}
