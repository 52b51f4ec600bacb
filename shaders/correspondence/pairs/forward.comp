#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Forward projection by pairs of modules: each voxel adds its elements times its value to the LORs.
//
// reads:    modules, pairs, masks, voxels
// writes:   LOR values of the window, by atomic addition. The terms of a sum are in any order, which
//           changes no bit of sums in fixed point (FIXED)
// shape:    one group for each cube of voxels
// variants: ; MASKS=1; HORIZON=1; NEAR=1; FIXED=1; HORIZON=1 NEAR=1 MASKS=1
#include "common/atomic.glsl"
#include "correspondence/pairs/pairs.glsl"

layout(std430, binding = LR_BIND_PAIR_IMAGE) readonly buffer Voxels
{
    float voxels[];
};
#ifdef FIXED
#define FIXED_BINDING LR_BIND_OUTPUT
#include "common/fixed.glsl"
#else
layout(std430, binding = LR_BIND_OUTPUT) buffer Lors
{
    LR_ATOMIC lors[];
};
#endif

float factor;

void emit(uint lor, float weight)
{
    float term = weight * factor;
#ifdef FIXED
    fixed_add(lor, term * scale.y);
#else
    LR_ATOMIC_ADD(lors[lor], term);
#endif
}

void main()
{
    ivec3 at = own_voxel();
    if (any(greaterThanEqual(at, num_voxels.xyz))) return;
    factor = voxels[voxel_index(at)] * scale.x;
    if (factor == 0.0) return;
    dvec3 point = own_point(at);
    for (int k = range.x; k < range.y; k++) visit_pair(module_pairs[k], point);
}
