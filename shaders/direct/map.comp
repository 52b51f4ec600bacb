#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// LORmap of one view (paper 1 of lr/direct.h, section 4.1): the kernel of each column of voxels.
// It is computed in double, so that columns near the border of two identifiers get the correct one.
//
// writes: LORmap, inside of its margins
// shape:  one thread for each column
#include "common/bindings.h"

layout(local_size_x = LR_DIRECT_GROUP) in;

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    dvec2 origin_mm, voxel_mm;
    dvec2 radial;
    double epsilon_mm, tie; // tie: LR_DIRECT_TIE, as a fraction of epsilon
    ivec2 size, margin;
    int mirrored; // added to the kernel's number on the negative radial side
};
layout(binding = LR_IMAGE_DIRECT_TARGET, r16ui) writeonly uniform uimage2D lor_map;

void main()
{
    int index = int(gl_GlobalInvocationID.x);
    ivec2 column = ivec2(index % size.x, index / size.x);
    if (column.y >= size.y) return;
    precise dvec2 at_mm = origin_mm + dvec2(column) * voxel_mm;
    precise double radial_mm = at_mm.x * radial.x + at_mm.y * radial.y;
    precise double share = abs(radial_mm) / epsilon_mm + tie;
    int kernel = int(floor(share));
    kernel += radial_mm < -tie * epsilon_mm ? mirrored : 0;
    imageStore(lor_map, column + margin, uvec4(kernel));
}
