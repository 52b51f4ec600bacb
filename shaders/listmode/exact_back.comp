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

// The line's value, and what is not added yet of four voxels: of columns and rows with even numbers, and odd ones.
float value;
vec4 sums_held = vec4(0.0);
ivec4 cells = ivec4(0);

void add_held(int cell, float sum)
{
    if (sum != 0.0) {
        add_to_sums(cell, sum);
    }
}

// Points of a voxel come in several steps, between those of its neighbours, and are added as one.
void take(ivec3 voxel, float element)
{
    int at = cell_of(voxel);
    bvec4 is_own = equal(ivec4((voxel.y & 1) + 2 * (voxel.z & 1)), ivec4(0, 1, 2, 3));
    int cell = is_own.x ? cells.x : is_own.y ? cells.y : is_own.z ? cells.z : cells.w;
    float sum = is_own.x ? sums_held.x : is_own.y ? sums_held.y : is_own.z ? sums_held.z : sums_held.w;
    if (at != cell) {
        add_held(cell, sum);
        sum = 0.0;
    }
    sum += value * element;
    cells = mix(cells, ivec4(at), is_own);
    sums_held = mix(sums_held, vec4(sum), is_own);
}

void main()
{
    uint k = gl_GlobalInvocationID.x;
    if (k >= uint(size.w)) {
        return;
    }
    read_scale();
    value = scaled(uintBitsToFloat(lines[2u * uint(size.w) + k].w));
    if (value == 0.0) {
        return;
    }
    each_element(k);
    add_held(cells.x, sums_held.x);
    add_held(cells.y, sums_held.y);
    add_held(cells.z, sums_held.z);
    add_held(cells.w, sums_held.w);
}
