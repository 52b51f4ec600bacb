#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sorts rows by a digit. Elements with the same digit keep their order.
//
// reads: LORs and values, starts of the rows; index of the first element of each [row][digit][share]
// writes: LORs and values
#include "correspondence/rows/sort.glsl"

layout(std430, binding = LR_BIND_ROWS_TO) writeonly buffer To
{
    uvec2 to[];
};
layout(std430, binding = LR_BIND_ROWS_PLACES) readonly buffer Places
{
    uint places[];
};

void main()
{
    if (own_share() >= num_shares) return;
    for (uint digit = 0u; digit < NUM_DIGITS; digit++) NUMBER(digit) = places[number_at(digit)];
    uvec2 range = own_range();
    for (uint k = range.x; k < range.y; k++) {
        uvec2 element = from[k];
        to[NUMBER(digit_of(element))++] = element;
    }
}
