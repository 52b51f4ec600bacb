#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Packs each voxel with three others: its mirror image along the column, and the images of both after half a turn about
// the grid's middle.
//
// reads: image [across 1][across 0][along]
// writes: four values for each voxel, in the same order
// shape: any number of threads; each takes every n-th voxel
#include "correspondence/columns/scene.glsl"

layout(std430, binding = LR_BIND_COLUMN_IMAGE) readonly buffer Image
{
    float voxels[];
};
layout(std430, binding = LR_BIND_OUTPUT) writeonly buffer Packed
{
    vec4 packed_voxels[];
};

void main()
{
    int along = num_points.z / num_samples.z, threads = int(gl_NumWorkGroups.x) * COLUMN_GROUP;
    for (int voxel = int(gl_GlobalInvocationID.x); voxel < count.w; voxel += threads) {
        int row = voxel / along * along, k = voxel - row;
        int turned = count.w - along - row;
        packed_voxels[voxel] =
            vec4(voxels[voxel], voxels[row + along - 1 - k], voxels[turned + k], voxels[turned + along - 1 - k]);
    }
}
