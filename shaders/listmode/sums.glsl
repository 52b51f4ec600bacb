// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The image's sums, slice by slice, that events are added to.
#include "listmode/fixed64.glsl"

layout(std430, binding = LR_BIND_LIST_SUMS) buffer Sums {
    uint sums[]; // [voxels][2]
};

// To the image's sums.
void add_to_sums(int voxel, float term)
{
    if (sums_are_floats()) {
        ADD_FLOAT(sums[2 * voxel], term)
    } else {
        uvec2 words = to_words(term);
        ADD_WORDS(sums[2 * voxel], sums[2 * voxel + 1], words)
    }
}
