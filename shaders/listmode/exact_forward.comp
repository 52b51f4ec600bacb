#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Computes values of events from an image, with exact elements.
//
// reads:     lines of listmode/exact_prepare.comp; the image, slice by slice
// writes:    a value for each selected line, also for lines that see nothing
// shape:     one thread for each line
// variants: TOF=1; LEANING=1; LEANING=1 TOF=1; TOF=1 BINS=1
#define LINES_ACCESS readonly
#include "listmode/exact.glsl"

layout(local_size_x = LR_EVENTS_EXACT_GROUP) in;

layout(std430, binding = LR_BIND_LIST_SLICES) readonly buffer Slices
{
    float image[];
};
layout(std430, binding = LR_BIND_LIST_VALUES) buffer Values
{
    float values[];
};

float sum = 0.0; // the line's value so far

void take(ivec3 voxel, float element)
{
    sum += element * image[cell_of(voxel)];
}

void main()
{
    uint k = gl_GlobalInvocationID.x;
    if (k >= uint(size.w)) return;
    uint place = lines[2u * uint(size.w) + k].z, at = uint(window.w) + place;
    if (place == LR_NONE) return;
    each_element(k);
    values[at] = window.z != 0 ? values[at] + sum : sum;
}
