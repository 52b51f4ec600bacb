// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The image's sums, slice by slice, that events are added to. Includers begin with common/atomic64.glsl.
#include "listmode/fixed64.glsl"

layout(std430, binding = LR_BIND_LIST_SUMS) buffer Sums {
    uint sums[]; // [voxels][2]
};
#ifdef LR_HAS_ATOMIC64
layout(std430, binding = LR_BIND_LIST_SUMS) buffer WholeSums {
    int64_t whole_sums[]; // the same, low words first; signed, as drivers add them
};
#endif

// Adds words that are at hand. No one waits for sums of 64 bits, as nothing is carried.
#ifdef LR_HAS_ATOMIC64
#define ADD_TO_WORDS(voxel, words) atomicAdd(whole_sums[voxel], packInt2x32(ivec2(words)));
#else
#define ADD_TO_WORDS(voxel, words) ADD_WORDS(sums[2 * (voxel)], sums[2 * (voxel) + 1], words)
#endif

// To the image's sums.
void add_to_sums(int voxel, float term)
{
    if (sums_are_floats()) {
        ADD_FLOAT(sums[2 * voxel], term)
    } else {
        uvec2 words = to_words(term);
        ADD_TO_WORDS(voxel, words)
    }
}
