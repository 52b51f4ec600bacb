/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#version 450 core
// variants: FACTOR=2.0
#include "common/numbers.h" // a second time below, by way of the block
#include "common/block.glsl"
layout(location = 0) out vec4 value;
layout(location = 1) out uvec4 count;

#ifndef FACTOR
#define FACTOR 1.0
#endif

void main()
{
    value = colour * FACTOR;
    count = number;
}
