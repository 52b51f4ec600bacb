#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Adds up the shares of a back-projection by columns.
//
// reads:     voxel sums [share][voxel]; count.z shares of count.w voxels
// writes:    voxels
// shape:     any number of threads; each takes every n-th voxel
// invariant: sums are added in a fixed order
#include "correspondence/columns/scene.glsl"

layout(std430, binding = LR_BIND_COLUMN_IMAGE) buffer Shares
{
    float shares[];
};

void main()
{
    int threads = int(gl_NumWorkGroups.x) * COLUMN_GROUP;
    for (int voxel = int(gl_GlobalInvocationID.x); voxel < count.w; voxel += threads) {
        float sum = 0.0;
        for (int k = 0; k < count.z; k++) {
            sum += shares[k * count.w + voxel];
            shares[k * count.w + voxel] = 0.0;
        }
        shares[voxel] = sum;
    }
}
