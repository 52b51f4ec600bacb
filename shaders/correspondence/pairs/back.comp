#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Back-projection by pairs of modules: each voxel adds up its elements times the values of their LORs.
//
// reads:     modules, pairs, masks, LOR values of the window
// adds to:   voxels
// shape:     one group for each cube of voxels
// invariant: sums are added in a fixed order
// variants:  ; MASKS=1; HORIZON=1; NEAR=1; HORIZON=1 NEAR=1 MASKS=1
#include "correspondence/pairs/pairs.glsl"

layout(std430, binding = LR_BIND_PAIR_IMAGE) buffer Voxels
{
    float voxels[];
};
layout(std430, binding = LR_BIND_OUTPUT) readonly buffer Lors
{
    float lors[];
};

float sum;

void emit(uint lor, float weight)
{
    sum = fma(weight, lors[lor], sum);
}

void main()
{
    ivec3 at = own_voxel();
    if (any(greaterThanEqual(at, num_voxels.xyz))) return;
    dvec3 point = own_point(at);
    float whole = 0.0;
    for (int k = range.x; k < range.y; k++) {
        sum = 0.0;
        visit_pair(module_pairs[k], point);
        whole += sum;
    }
    voxels[voxel_index(at)] += whole * scale.x;
}
