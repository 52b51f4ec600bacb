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

#ifdef GL_NV_shader_atomic_float
layout(std430, binding = LR_BIND_LIST_SUMS) buffer FloatSums {
    float float_sums[]; // the same, where sums_are_floats
};
#endif

// Adds to a sum that is a float: by the driver where it can, else by compare and swap.
void add_float_to_sums(int voxel, float term)
{
#ifdef GL_NV_shader_atomic_float
    atomicAdd(float_sums[2 * voxel], term);
#else
    uint seen = sums[2 * voxel], old;
    do {
        old = seen;
        seen = atomicCompSwap(sums[2 * voxel], old, floatBitsToUint(uintBitsToFloat(old) + term));
    } while (seen != old);
#endif
}

// Adds words that are at hand. No one waits for sums of 64 bits, as nothing is carried.
#ifdef LR_HAS_ATOMIC64
#define ADD_TO_WORDS(voxel, words) atomicAdd(whole_sums[voxel], packInt2x32(ivec2(words)));
#else
#define ADD_TO_WORDS(voxel, words) ADD_WORDS(sums[2 * (voxel)], sums[2 * (voxel) + 1], words)
#endif

// Adds to the image's sums.
void add_to_sums(int voxel, float term)
{
    if (sums_are_floats()) {
        add_float_to_sums(voxel, term);
    } else {
        uvec2 words = to_words(term);
        ADD_TO_WORDS(voxel, words)
    }
}
