#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Forward projection of single LORs (correspondence/columns/list.glsl).
//
// reads:     column modules, pairs and points, masks, image [across 1][across 0][along]
// adds to:   values of the list
// shape:     LR_LIST_SHARE threads for each LOR
// invariant: sums are added in a fixed order
// variants:  EXACT=1; EXACT=1 NEAR=1 STEEP=1; RAYS=4; EXACT=1 MASKS=1
#include "correspondence/columns/list.glsl"

layout(std430, binding = LR_BIND_COLUMN_IMAGE) readonly buffer Image
{
    float voxels[];
};

shared float partial[COLUMN_GROUP];
float sum;

void take(int voxel, float weight)
{
    sum = fma(weight, voxels[voxel], sum);
}

void main()
{
    int at = entry_at();
    sum = 0.0;
    if (at < count.x) visit_entry(entries[at]);
    partial[gl_LocalInvocationIndex] = sum;
    barrier();
    if (at < count.x && thread_of_entry() == 0) {
        float whole = 0.0;
        for (int k = 0; k < LR_LIST_SHARE; k++) whole += partial[int(gl_LocalInvocationIndex) + k];
        entries[at].value += whole / float(num_samples.x * num_samples.y * num_samples.z);
    }
    check_loops();
}
