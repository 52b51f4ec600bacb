#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Counts how often each digit occurs in each share.
//
// reads:  LORs, starts of the rows
// writes: numbers [row][digit][share]
#include "correspondence/rows/sort.glsl"

layout(std430, binding = LR_BIND_ROWS_PLACES) writeonly buffer Places
{
    uint places[];
};

void main()
{
    if (own_share() >= num_shares) return;
    for (uint digit = 0u; digit < NUM_DIGITS; digit++) NUMBER(digit) = 0u;
    uvec2 range = own_range();
    for (uint k = range.x; k < range.y; k++) NUMBER(digit_of(from[k]))++;
    for (uint digit = 0u; digit < NUM_DIGITS; digit++) places[number_at(digit)] = NUMBER(digit);
}
