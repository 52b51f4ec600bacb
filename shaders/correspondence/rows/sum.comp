#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Adds up the numbers of each share.
//
// reads:  numbers
// writes: a sum for each thread
#include "correspondence/rows/rows.glsl"

layout(std430, binding = LR_BIND_ROWS_PLACES) readonly buffer Places
{
    uint places[];
};
layout(std430, binding = LR_BIND_ROWS_SUMS) writeonly buffer Sums
{
    uint sums[];
};

void main()
{
    uint sum = 0u;
    for (uint k = own_share() * share; k < min((own_share() + 1u) * share, total); k++) sum += places[k];
    sums[own_share()] = sum;
}
