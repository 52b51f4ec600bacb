#version 450 core
// variants: TO_GRID=1
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Copies an image from the grid's order, x fastest, into the order of a projector, or back
// (TO_GRID).
//
// reads:  image in one order
// writes: image in the other order
// shape:  each thread takes every n-th voxel of the grid
#include "common/bindings.h"

layout(local_size_x = LR_GROUP_SIZE) in;

layout(std430, binding = LR_BIND_ORDER_GRID) buffer Grid
{
    float grid[];
};
layout(std430, binding = LR_BIND_ORDER_PROJECTOR) buffer Projector
{
    float projector[];
};

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    uvec4 extent;  // x, y, z: numbers of voxels along these axes; w: total number
    uvec4 strides; // distance in the projector's order between neighbours along x, y, z; w: index in the grid's range
                   // where the image begins
};

void main()
{
    uint num_threads = gl_NumWorkGroups.x * uint(LR_GROUP_SIZE);
    for (uint v = gl_GlobalInvocationID.x; v < extent.w; v += num_threads) {
        uvec3 at = uvec3(v % extent.x, v / extent.x % extent.y, v / extent.x / extent.y);
        uvec3 steps = at * strides.xyz;
        uint there = steps.x + steps.y + steps.z;
#ifdef TO_GRID
        grid[strides.w + v] = projector[there];
#else
        projector[there] = grid[strides.w + v];
#endif
    }
}
