#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Lines, over what is there.
layout(location = 0) flat in vec4 in_colour;
layout(location = 0) out vec4 out_colour;

void main()
{
    out_colour = in_colour;
}
