// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sums of back-projections: integers of 64 bits in two's complement as two words, so that they have the
// same bits in every order of their terms (docs/method/listmode.md, "Backend compute").
#include "listmode/scale.glsl"

// 2^exponent, which is a normal number.
float power_of_2(int exponent)
{
    return uintBitsToFloat(uint(127 + exponent) << 23);
}

// A value in units of sums, of which the largest term is 2^unit.x: no term is larger.
float scaled(float value)
{
    if (sums_are_floats()) {
        return value;
    }
    int own = int(exponent_of(value)) - 126;
    int bits = own + int(unit.x) - largest_term_exponent();
    float part = uintBitsToFloat((floatBitsToUint(value) & 0x807fffffu) | 126u << 23);
    return own > -126 ? part * power_of_2(clamp(bits, -126, 126)) : 0.0;
}

// The nearest integer, low word first.
uvec2 to_words(float term)
{
    if (abs(term) < 2147483648.0) {
        int whole = int(roundEven(term));
        return uvec2(uint(whole), uint(whole >> 31));
    }
    float high = floor(term * (1.0 / 4294967296.0));
    return uvec2(uint(term - high * 4294967296.0), uint(int(high)));
}

// Adds words to two others that any thread may add to.
#define ADD_WORDS(low, high, words)                                                                \
    {                                                                                              \
        uint add_carried = (words).y;                                                              \
        if ((words).x != 0u) {                                                                     \
            uint add_old = atomicAdd(low, (words).x);                                              \
            add_carried += add_old + (words).x < add_old ? 1u : 0u;                                \
        }                                                                                          \
        if (add_carried != 0u) {                                                                   \
            atomicAdd(high, add_carried);                                                          \
        }                                                                                          \
    }

// Adds to a float, whose bits are a word that any thread may add to.
#define ADD_FLOAT(word, term)                                                                      \
    {                                                                                              \
        uint add_seen = word, add_old;                                                             \
        do {                                                                                       \
            add_old = add_seen;                                                                    \
            add_seen = atomicCompSwap(word, add_old,                                               \
                                      floatBitsToUint(uintBitsToFloat(add_old) + (term)));         \
        } while (add_seen != add_old);                                                             \
    }
