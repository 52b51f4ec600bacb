#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Copies an image from the grid's order to slices across the axes that have lines. TO_GRID: copies the sums of slices
// to the grid's order, and sets the sums to zero.
//
// reads: the image in the grid's order, from values_at.z on; with TO_GRID sums, and also the image if
//         values_at.w says that the sums are added to it
// writes: the image in slices, or in the grid's order
// shape: each thread takes every n-th voxel; for an image in slices, groups along y are axes
// variants: TO_GRID=1
#define KEPT
#include "listmode/pass.glsl"
#ifdef TO_GRID
#include "listmode/scale.glsl"
#endif

layout(local_size_x = LR_EVENTS_GROUP) in;

layout(std430, binding = LR_BIND_LIST_GRID) buffer Grid
{
    float grid[];
};
#ifdef TO_GRID
layout(std430, binding = LR_BIND_LIST_SUMS) buffer Sums
{
    uvec2 sums[];
};

// The value of one unit of the sums. It is a normal number in double.
double unit_of_sums()
{
    int exponent = largest_term_exponent() - int(unit.x);
    return packDouble2x32(uvec2(0u, uint(1023 + exponent) << 20));
}

// Reads sum k and sets it to 0. The result is in units of the sums. If sums are floats, the result is the float itself.
double take_sum(uint k)
{
    uvec2 words = sums[k];
    sums[k] = uvec2(0u);
    return sums_are_floats() ? double(uintBitsToFloat(words.x))
                             : double(int(words.y)) * 4294967296.0lf + double(words.x);
}

float value_of(double sum)
{
    return sums_are_floats() ? float(sum) : float(sum * unit_of_sums());
}
#else
layout(std430, binding = LR_BIND_LIST_SLICES) writeonly buffer Slices
{
    float image[];
};
#endif

// Index in the grid of voxel k of the slices.
uint place_in_grid(uint k)
{
    uint u = k % uint(size.y), line = k / uint(size.y);
    uint v = line % uint(size.z), s = line / uint(size.z);
    return s * uint(strides.x) + u * uint(strides.y) + v * uint(strides.z);
}

#ifdef TO_GRID
// The sum of the grid's voxel k over the slices of the current axis.
double take_voxel(uint k)
{
    uint s = k / uint(strides.x) % uint(size.x), u = k / uint(strides.y) % uint(size.y);
    uint v = k / uint(strides.z) % uint(size.z);
    return take_sum(uint(frame_begin) + (s * uint(size.z) + v) * uint(size.y) + u);
}

void take(uint k)
{
    double sum = 0.0lf;
    for (int axis = 0; axis < 3; axis++) {
        enter_frame(axis);
        sum += slab.w != 0 ? take_voxel(k) : 0.0lf;
    }
    uint at = uint(values_at.z) + k;
    float value = value_of(sum);
    grid[at] = values_at.w != 0 ? grid[at] + value : value;
}
#else
void take(uint k)
{
    if (slab.w != 0) image[uint(frame_begin) + k] = grid[uint(values_at.z) + place_in_grid(k)];
}
#endif

void main()
{
    uint all = gl_NumWorkGroups.x * LR_EVENTS_GROUP;
    enter_frame(int(gl_WorkGroupID.y));
#ifdef TO_GRID
    read_scale();
#endif
    for (uint k = gl_GlobalInvocationID.x; k < uint(frames[0].strides.w); k += all) take(k);
}
