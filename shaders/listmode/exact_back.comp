#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Back-projects events into the image, with exact elements.
//
// reads:     lines of listmode/exact_prepare.comp with their values; their scale
// writes:    sums of the image, slice by slice
// shape:     one thread for each line
// invariant: sums are integers with the same bits in every run, except if sums_are_floats
// variants: TOF=1; LEANING=1; LEANING=1 TOF=1; TOF=1 BINS=1
#include "common/atomic64.glsl"
#define LINES_ACCESS readonly
#include "listmode/exact.glsl"
#include "listmode/sums.glsl"

layout(local_size_x = LR_EVENTS_EXACT_GROUP) in;

// value: the line's value; sum: the sum for the current voxel, `cell`, which has not been added to the image yet
float value, sum = 0.0;
int cell = 0;

// Terms of consecutive points in one voxel are added up first.
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

void main()
{
    uint k = gl_GlobalInvocationID.x;
    if (k >= uint(size.w)) return;
    read_scale();
    value = scaled(uintBitsToFloat(lines[2u * uint(size.w) + k].w));
    if (value == 0.0) return;
    each_element(k);
    if (sum != 0.0) add_to_sums(cell, sum);
}
