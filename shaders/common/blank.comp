#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sets the values of LORs of other parts, which are interleaved with those of a part, to 0. A LOR is in a part by
// its angle, the sum of the places of its two crystals around the axis: lr_angle_is_in makes the table.
//
// reads:  modules, pairs of modules, and for each sum of two places 1 if its LORs stay
// writes: values
// shape:  each group takes every n-th pair
#include "common/bindings.h"

layout(local_size_x = LR_GROUP_SIZE) in;

layout(std140, binding = LR_BIND_PASS) uniform Pass {
    uint num_pairs;
};

layout(std430, binding = LR_BIND_MODULES) readonly buffer Modules {
    ivec4 modules[]; // crystals along u and v; place of number 0; step to the next, doubled if numbers run along v
};
layout(std430, binding = LR_BIND_PAIRS) readonly buffer Pairs {
    uvec4 pairs[]; // number of the first value; modules
};
layout(std430, binding = LR_BIND_ROWS) readonly buffer Kept {
    uint kept[];
};
layout(std430, binding = LR_BIND_OUTPUT) buffer Values {
    float values[];
};

int place_of(ivec4 module, uint crystal)
{
    uint along_u = uint(module.x);
    return module.z + (abs(module.w) == 2 ? module.w / 2 * int(crystal / along_u) : module.w * int(crystal % along_u));
}

void main()
{
    for (uint k = gl_WorkGroupID.x; k < num_pairs; k += gl_NumWorkGroups.x) {
        uvec4 pair = pairs[k];
        ivec4 i = modules[pair.y], j = modules[pair.z];
        uint crystals_j = uint(j.x * j.y), count = uint(i.x * i.y) * crystals_j;
        for (uint n = gl_LocalInvocationID.x; n < count; n += uint(LR_GROUP_SIZE)) {
            if (kept[place_of(i, n / crystals_j) + place_of(j, n % crystals_j)] == 0u) {
                values[pair.x + n] = 0.0;
            }
        }
    }
}
