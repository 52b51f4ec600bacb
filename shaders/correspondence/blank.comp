#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sets the values of other parts' LORs to 0. The part that a LOR belongs to follows from the sum of its two crystals'
// positions around the axis, and from the kind of their rows (lr_turn).
//
// reads: modules, pairs of modules, and for each sum of two positions one bit per kind of rows: 1 = LORs of this
//        kind stay
// writes: values
// shape: each group takes every n-th pair
#include "common/bindings.h"

layout(local_size_x = LR_GROUP_SIZE) in;

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    uint num_pairs;
};

layout(std430, binding = LR_BIND_MODULES) readonly buffer Modules
{
    ivec4 modules[]; // x, y: crystals along u and v; z: position of crystal 0 around the axis; w: 4 * rank (struct
                     // lr_module_places) + 2 (if positions run along v) + 1 (if they increase)
};
layout(std430, binding = LR_BIND_PAIRS) readonly buffer Pairs
{
    uvec4 pairs[]; // x: number of the first value; y, z: modules; w: unused
};
layout(std430, binding = LR_BIND_ROWS) readonly buffer Kept
{
    uint kept[];
};
layout(std430, binding = LR_BIND_OUTPUT) buffer Values
{
    float values[];
};

// The crystal's position around the axis (lr_place_of_crystal), and the number of its row (lr_row_of_crystal).
ivec2 place_and_row(ivec4 module, uint crystal)
{
    ivec2 pq = ivec2(crystal % uint(module.x), crystal / uint(module.x));
    if ((module.w & 2) != 0) pq = pq.yx;
    return ivec2(module.z + ((module.w & 1) != 0 ? pq.x : -pq.x), module.w / 4 + pq.y);
}

void main()
{
    for (uint k = gl_WorkGroupID.x; k < num_pairs; k += gl_NumWorkGroups.x) {
        uvec4 pair = pairs[k];
        ivec4 i = modules[pair.y], j = modules[pair.z];
        uint crystals_j = uint(j.x * j.y), count = uint(i.x * i.y) * crystals_j;
        for (uint n = gl_LocalInvocationID.x; n < count; n += uint(LR_GROUP_SIZE)) {
            ivec2 at = place_and_row(i, n / crystals_j), other = place_and_row(j, n % crystals_j);
            if ((kept[at.x + other.x] >> ((at.y + 2 * other.y) % 4) & 1u) == 0u) values[pair.x + n] = 0.0;
        }
    }
}
