// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The image's sums, slice by slice, to which events are added. Include common/atomic64.glsl at the
// beginning of the shader.
#include "listmode/fixed64.glsl"

layout(std430, binding = LR_BIND_LIST_SUMS) buffer Sums
{
    uint sums[]; // [voxels][2]
};
#ifdef LR_HAS_ATOMIC64
layout(std430, binding = LR_BIND_LIST_SUMS) buffer WholeSums
{
    int64_t whole_sums[]; // the same sums, low words first; drivers add signed integers
};
#endif

#ifdef GL_NV_shader_atomic_float
layout(std430, binding = LR_BIND_LIST_SUMS) buffer FloatSums
{
    float float_sums[]; // the same sums, if sums_are_floats
};
#endif

// Adds to a sum that is a float, by the driver's extension if there is one, else by compare and
// swap.
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

// Adds two words to a sum. Additions of 64 bits do not wait for a result, because there is no carry
// to handle.
#ifdef LR_HAS_ATOMIC64
#define ADD_TO_WORDS(voxel, words) atomicAdd(whole_sums[voxel], packInt2x32(ivec2(words)));
#else
#define ADD_TO_WORDS(voxel, words) ADD_WORDS(sums[2 * (voxel)], sums[2 * (voxel) + 1], words)
#endif

// Adds a term to the image's sums.
void add_to_sums(int voxel, float term)
{
    if (sums_are_floats()) {
        add_float_to_sums(voxel, term);
    } else {
        uvec2 words = to_words(term);
        ADD_TO_WORDS(voxel, words)
    }
}
