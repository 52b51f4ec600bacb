#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Events into the image, by exact elements.
//
// reads:     lines of listmode/exact_prepare.comp with their values; what they are scaled by
// writes:    sums of the image, slice by slice
// shape:     one thread a line
// invariant: sums are integers, the same bits in every run, but where sums_are_floats
// variants: TOF=1; LEANING=1; LEANING=1 TOF=1
#include "common/atomic64.glsl"
#define LINES_ACCESS readonly
#include "listmode/exact.glsl"
#include "listmode/sums.glsl"

layout(local_size_x = LR_EVENTS_EXACT_GROUP) in;

// The line's value, and what is not added yet of a voxel.
float value, sum = 0.0;
int cell = 0;

// Points of one voxel that come one after the other are added as one.
void take(ivec3 voxel, float element)
{
    int at = cell_of(voxel);
    if (at != cell && sum != 0.0) {
        add_to_sums(cell, sum);
        sum = 0.0;
    }
    cell = at;
    sum += value * element;
}

// Lines that follow each other go through the same slices. Groups that run at the same time take lines that are far
// apart, so that few of them wait for each other's additions.
uint line_at_hand()
{
    uint groups = (uint(size.w) + LR_EVENTS_EXACT_GROUP - 1u) / LR_EVENTS_EXACT_GROUP;
    uint apart = (groups + LR_EVENTS_EXACT_SPREAD - 1u) / LR_EVENTS_EXACT_SPREAD;
    uint number = gl_WorkGroupID.x % LR_EVENTS_EXACT_SPREAD * apart + gl_WorkGroupID.x / LR_EVENTS_EXACT_SPREAD;
    return number * LR_EVENTS_EXACT_GROUP + gl_LocalInvocationID.x;
}

void main()
{
    uint k = line_at_hand();
    if (k >= uint(size.w)) {
        return;
    }
    read_scale();
    value = scaled(uintBitsToFloat(lines[2u * uint(size.w) + k].w));
    if (value == 0.0) {
        return;
    }
    each_element(k);
    if (sum != 0.0) {
        add_to_sums(cell, sum);
    }
}
