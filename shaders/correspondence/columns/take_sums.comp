#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Converts sums in fixed point (common/fixed.glsl) to floats.
//
// reads:  sums of count.w voxels, after a header of one entry; origin.w, the value of a sum of 1
// writes: the image in the order of columns
// shape:  any number of threads; each takes every n-th voxel
#include "correspondence/columns/scene.glsl"

layout(std430, binding = LR_BIND_COLUMN_LIST) readonly buffer Sums
{
    uvec2 sums[]; // the first entry is the header
};
layout(std430, binding = LR_BIND_COLUMN_IMAGE) writeonly buffer Image
{
    float image[];
};

void main()
{
    int threads = int(gl_NumWorkGroups.x) * COLUMN_GROUP;
    for (int voxel = int(gl_GlobalInvocationID.x); voxel < count.w; voxel += threads) {
        uvec2 sum = sums[voxel + 1];
        image[voxel] = (float(int(sum.y)) * 4294967296.0 + float(sum.x)) * origin.w;
    }
}
