/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#version 450 core
#include "common/numbers.h"
#include "common/broken.glsl"
layout(location = 0) out float value;

void main()
{
    value = half_of(1.0);
}
