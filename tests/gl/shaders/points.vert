/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#version 450 core
#include "common/numbers.h"
/* x, y: pixel of a 16 x 16 image; z: what it adds. */
layout(std430, binding = POINTS_BINDING) readonly buffer Points {
    vec4 points[];
};
flat out float added;

void main()
{
    vec4 point = points[gl_VertexID];
    gl_Position = vec4((point.xy + 0.5) / 8.0 - 1.0, 0.0, 1.0);
    added = point.z;
}
