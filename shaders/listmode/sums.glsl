// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The image's sums, slice by slice. Passes add events to these sums. The shader includes common/atomic64.glsl at its
// beginning.
#include "listmode/fixed64.glsl"

layout(std430, binding = LR_BIND_LIST_SUMS) buffer Sums
{
    uint sums[]; // [voxels][2]
};
#ifdef LR_HAS_ATOMIC64
layout(std430, binding = LR_BIND_LIST_SUMS) buffer WholeSums
{
    int64_t whole_sums[]; // `sums` as signed integers, low words first; drivers add only signed integers
};
#endif

#ifdef GL_NV_shader_atomic_float
layout(std430, binding = LR_BIND_LIST_SUMS) buffer FloatSums
{
    float float_sums[]; // the memory of `sums` as floats, used if sums_are_floats
};
#endif

// Adds to a sum that is a float. Uses the driver's extension if there is one, otherwise compare and swap.
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

// Adds two words to a sum. An addition of 64 bits needs no carry, so the thread need not wait for a result.
#ifdef LR_HAS_ATOMIC64
#define ADD_TO_WORDS(voxel, words) atomicAdd(whole_sums[voxel], packInt2x32(ivec2(words)));
#else
#define ADD_TO_WORDS(voxel, words) ADD_WORDS(sums[2 * (voxel)], sums[2 * (voxel) + 1], words)
#endif

void add_to_sums(int voxel, float term)
{
    if (sums_are_floats()) {
        add_float_to_sums(voxel, term);
    } else {
        uvec2 words = to_words(term);
        ADD_TO_WORDS(voxel, words)
    }
}
