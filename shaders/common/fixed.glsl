// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sums in fixed point. A sum has the same bits in whatever order threads add their terms. A sum is an integer of 64
// bits in two's complement, low word first. The number 1 is stored as 2^61. `fixed_overflow` is set if the size of a
// term or sum is 4 or more. The including file defines FIXED_BINDING.

layout(std430, binding = FIXED_BINDING) buffer Fixed
{
    uint fixed_overflow, fixed_unused;
    uint fixed_words[];
};

// Nearest integer to 2^61 |term|, with the sign of the term.
uvec2 to_fixed(float term)
{
    float size = abs(term) * 536870912.0; // in units of the high word
    float high = floor(size);
    uvec2 words = uvec2(uint(roundEven((size - high) * 4294967296.0)), uint(high));
    if (term < 0.0) {
        words = ~words;
        words.x += 1u;
        words.y += words.x == 0u ? 1u : 0u;
    }
    return words;
}

void fixed_add(uint at, float term)
{
    if (abs(term) >= 4.0) {
        fixed_overflow = 1u;
        return;
    }
    uvec2 words = to_fixed(term);
    if (words.x != 0u) {
        uint old = atomicAdd(fixed_words[2u * at], words.x);
        words.y += old + words.x < old ? 1u : 0u;
    }
    if (words.y != 0u) {
        uint old = atomicAdd(fixed_words[2u * at + 1u], words.y);
        uint new = old + words.y;
        if (((old ^ new) & (words.y ^ new)) >> 31 != 0u) fixed_overflow = 1u;
    }
}
