// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The scene that src/correspondence/compute/pairs/pairs.c uploads for the passes by pairs of modules; lengths in mm.
#include "common/bindings.h"

layout(local_size_x = LR_GROUP_SIZE) in;

struct PairModule {
    dvec4 centre; // centre of the detection plane
    dvec4 u, v, normal;
    dvec4 cells;    // x, y: pitch along u and v; z, w: face along u and v
    ivec4 crystals; // x, y: numbers along u and v; z: total number
    ivec4 unused;
};
layout(std430, binding = LR_BIND_PAIR_MODULES) readonly buffer PairModules
{
    PairModule pair_modules[];
};

struct ModulePair {
    uint i, j;  // i < j
    uint first; // number of the pair's first LOR, in the window
    uint mask;  // index of the pair's mask; LR_NONE = all LORs are in coincidence
};
layout(std430, binding = LR_BIND_PAIR_LIST) readonly buffer ModulePairs
{
    ModulePair module_pairs[];
};

layout(std430, binding = LR_BIND_PAIR_STATE) buffer State
{
    uint unfinished; // 1 if the loops of some thread were ended too early
};

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    ivec4 num_voxels;  // x, y, z: numbers of voxels; w: first slice of this pass
    ivec4 num_samples; // x, y, z: numbers of sample points of a voxel; w: the current sample point
    ivec4 range;       // x: first pair; y: one after the last pair
    ivec4 list;        // rows: x: first point; y: one after the last; z: capacity, in elements; w: rounds for
                       // common/loops.glsl
    dvec4 first_voxel; // centre of the first voxel
    dvec4 voxel;       // edges of a voxel
    vec4 scale;        // x: 1 / points of a voxel; y: scale of sums in fixed point
};

const int BLOCK = 4; // edge of the cube of voxels of a workgroup, in voxels

// The thread's voxel. It is outside the image for threads beyond the image's border.
ivec3 own_voxel()
{
    int thread = int(gl_LocalInvocationIndex);
    ivec3 within = ivec3(thread % BLOCK, thread / BLOCK % BLOCK, thread / (BLOCK * BLOCK));
    return BLOCK * ivec3(gl_WorkGroupID) + within + ivec3(0, 0, num_voxels.w);
}

int voxel_index(ivec3 at)
{
    return (at.z * num_voxels.y + at.y) * num_voxels.x + at.x;
}

dvec3 own_point(ivec3 at)
{
    ivec3 n = num_samples.xyz;
    int k = num_samples.w;
    ivec3 part = ivec3(k % n.x, k / n.x % n.y, k / (n.x * n.y));
    dvec3 offset = (dvec3(part) + 0.5lf) / dvec3(n) - 0.5lf;
    return first_voxel.xyz + (dvec3(at) + offset) * voxel.xyz;
}
