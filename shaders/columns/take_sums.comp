#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Turns sums in fixed point (common/fixed.glsl) into floats.
//
// reads:  sums of count.w voxels, behind a head; origin.w, what a sum of 1 on the device stands for
// writes: the image in columns
// shape:  any number of threads, which take voxels in turn
#include "columns/scene.glsl"

layout(std430, binding = LR_BIND_COLUMN_LIST) readonly buffer Sums {
    uvec2 sums[]; // the head is the first
};
layout(std430, binding = LR_BIND_COLUMN_IMAGE) writeonly buffer Image {
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
