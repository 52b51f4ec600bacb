/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "common/numbers.h"
layout(std140, binding = BLOCK_BINDING) uniform Block {
    vec4 colour;
    uvec4 number;
};
