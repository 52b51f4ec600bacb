#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Lines with one colour each, whose alpha blends them with the picture below.
layout(location = 0) flat in vec4 in_colour;
layout(location = 0) out vec4 out_colour;

void main()
{
    out_colour = in_colour;
}
