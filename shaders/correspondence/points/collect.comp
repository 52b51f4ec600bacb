#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Adds the images of each row of a batch to its voxel.
//
// reads:  rows, one sum for each image
// writes: voxel sums; a row occurs once in a batch
// shape:  one thread for each row
#include "correspondence/rows.glsl"

layout(local_size_x = LR_GROUP_SIZE) in;

layout(std430, binding = LR_BIND_SUMS) readonly buffer Sums
{
    float sums[];
};
layout(std430, binding = LR_BIND_OUTPUT) buffer Voxels
{
    float voxels[];
};

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    uint num_rows;
};

void main()
{
    if (gl_GlobalInvocationID.x >= num_rows) return;
    Row row = rows[gl_GlobalInvocationID.x];
    float sum = 0.0;
    for (uint k = row.first_image; k < row.end_image; k++) sum += sums[k];
    voxels[row.voxel] += sum * row.factor;
}
