#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Writes the point's value. Additive blending adds up the values of a texel.
layout(location = 0) flat in float in_value;
layout(location = 0) out float out_value;

void main()
{
    out_value = in_value;
}
