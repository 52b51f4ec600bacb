/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#version 450 core
// variants: FACTOR=3u
#include "common/numbers.h"
layout(local_size_x = 8) in;
layout(binding = SOURCE_UNIT) uniform usampler2D source;
layout(std430, binding = POINTS_BINDING) buffer Numbers {
    uint numbers[];
};
layout(binding = 0, r32ui) uniform uimage2D image;

#ifndef FACTOR
#define FACTOR 2u
#endif

void main()
{
    uint k = gl_GlobalInvocationID.x;
    ivec2 texel = ivec2(k, 0);
    numbers[k] += FACTOR * texelFetch(source, texel, 0).x;
    imageStore(image, texel, uvec4(numbers[k] + 1u));
}
