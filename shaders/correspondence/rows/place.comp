#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Converts counts to indices of first elements: each number is replaced by the sum of all numbers before it.
//
// reads: numbers; a sum for each thread
// writes: numbers
#include "correspondence/rows/rows.glsl"

layout(std430, binding = LR_BIND_ROWS_PLACES) buffer Places
{
    uint places[];
};
layout(std430, binding = LR_BIND_ROWS_SUMS) readonly buffer Sums
{
    uint sums[];
};

shared uint before[LR_SORT_GROUP]; // parts of the sum over all preceding groups, one part per thread
shared uint own[LR_SORT_GROUP];    // sums of this group's threads

void main()
{
    uint thread = gl_LocalInvocationID.x;
    uint first = gl_WorkGroupID.x * uint(LR_SORT_GROUP);
    uint sum = 0u;
    for (uint k = thread; k < first; k += uint(LR_SORT_GROUP)) sum += sums[k];
    before[thread] = sum;
    own[thread] = sums[first + thread];
    barrier();
    uint place = 0u;
    for (uint k = 0u; k < uint(LR_SORT_GROUP); k++) place += before[k] + (k < thread ? own[k] : 0u);
    for (uint k = own_share() * share; k < min((own_share() + 1u) * share, total); k++) {
        uint number = places[k];
        places[k] = place;
        place += number;
    }
}
