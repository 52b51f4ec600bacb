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

// x times 2^exponent, |exponent| < 252.
float times_power(float x, int exponent)
{
    int half_of_it = exponent / 2;
    return x * power_of_2(half_of_it) * power_of_2(exponent - half_of_it);
}

// A value, without its exponent.
float mantissa_of(float value)
{
    return uintBitsToFloat((floatBitsToUint(value) & 0x807fffffu) | 126u << 23);
}

// --- sums of a group, in one word each: values differ little in size ---

bool is_usual(float value)
{
    uint own = exponent_of(value);
    return own > 0u && own <= known_usual && own + LR_EVENTS_CELL_SPREAD > known_usual;
}

// The term of a usual value's size: 2^18 for the largest one that is usual, or more.
uint size_of_usual(float value)
{
    return uint(abs(mantissa_of(value)) * power_of_2(18 + int(exponent_of(value)) - int(known_usual))) + 1u;
}

// x is below 2 to one more than this, and not below 2 to this.
int floor_log2(float x)
{
    return int(exponent_of(x)) - 127;
}

// A value of 1 is 2 to this in sums that hold all values of this size together; with are_small all terms are
// below 2^22, too. No unit is smaller than that of the image's sums.
int bits_of_cells(uint all_sizes, bool are_small)
{
    int of_sums = floor_log2(unit.w / float(all_sizes)) + 18;
    int of_terms = floor_log2(unit.w * (4194304.0 / LR_EVENTS_CELL_MOST));
    int bits = (are_small ? min(of_sums, of_terms) : of_sums) - (int(known_usual) - 126);
    return sums_are_floats() ? bits : min(bits, int(unit.x) - largest_term_exponent());
}

// A usual value in units of such sums.
float scaled_for_cells(float value, int bits)
{
    return mantissa_of(value) * power_of_2(int(exponent_of(value)) - 126 + bits);
}

// Such a sum in units of the image's, which have at most 63 bits more.
uvec2 cell_words(int sum, int bits)
{
    int more = int(unit.x) - largest_term_exponent() - bits;
    if (more >= 32) {
        return uvec2(0u, uint(sum) << (more - 32));
    }
    return uvec2(uint(sum) << more, uint(more > 0 ? sum >> (32 - more) : sum >> 31));
}

// --- sums of the image ---

// A value in units of sums, of which the largest term is 2^unit.x: no term is larger.
float scaled(float value)
{
    if (sums_are_floats()) {
        return value;
    }
    int own = int(exponent_of(value)) - 126;
    int bits = own + int(unit.x) - largest_term_exponent();
    return own > -126 ? mantissa_of(value) * power_of_2(clamp(bits, -126, 126)) : 0.0;
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

