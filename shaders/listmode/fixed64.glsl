// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sums of back-projections: integers of 64 bits in two's complement, as two words. Their bits do not depend on the
// order of their terms (docs/method/listmode.md, "Backend compute").
#include "listmode/scale.glsl"

// 2^exponent; the result must be a normal number.
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

// The value with its exponent removed: its size is at least 1/2 and below 1.
float mantissa_of(float value)
{
    return uintBitsToFloat((floatBitsToUint(value) & 0x807fffffu) | 126u << 23);
}

// --- sums of a group, in one word each, for values of similar size ---

bool is_usual(float value)
{
    uint own = exponent_of(value);
    return own > 0u && own <= known_usual && own + LR_EVENTS_CELL_SPREAD > known_usual;
}

// The size of a usual value in whole units, rounded up. The usual exponent is the largest exponent of usual values.
// Values with this exponent have 2^17 to 2^18 units.
uint size_of_usual(float value)
{
    return uint(abs(mantissa_of(value)) * power_of_2(18 + int(exponent_of(value)) - int(known_usual))) + 1u;
}

// floor(log2(x)), that is 2^result <= x < 2^(result + 1).
int floor_log2(float x)
{
    return int(exponent_of(x)) - 127;
}

// Returns the number of fraction bits of a group's sums: the value 1 is 2^result. all_sizes: sum of the sizes of the
// group's values; voxels: number of voxels of a slice over which these values are spread. With this unit, sums of up to
// 16 times the mean do not overflow, and terms are below 2^30. The unit is never smaller than that of the image's sums.
int bits_of_cells(uint all_sizes, int voxels)
{
    int of_sums = floor_log2(unit.w / float(all_sizes)) + 18 + max(floor_log2(float(voxels)) - 4, 0);
    int of_terms = floor_log2(0.5 * unit.w);
    int bits = min(of_sums, of_terms) - (int(known_usual) - 126);
    return sums_are_floats() ? bits : min(bits, int(unit.x) - largest_term_exponent());
}

// A usual value, in units of a group's sums.
float scaled_for_cells(float value, int bits)
{
    return mantissa_of(value) * power_of_2(int(exponent_of(value)) - 126 + bits);
}

// Converts a group's sum to the units of the image's sums, which have up to 63 more bits.
uvec2 cell_words(int sum, int bits)
{
    int more = int(unit.x) - largest_term_exponent() - bits;
    if (more >= 32) return uvec2(0u, uint(sum) << (more - 32));
    return uvec2(uint(sum) << more, uint(more > 0 ? sum >> (32 - more) : sum >> 31));
}

// The words that are added to an image's sum if a group's sum has overflowed. Sums overflow only in groups with large
// terms, for which the image's sums have fewer than 32 more bits.
uvec2 carry_words(bool is_positive, int bits)
{
    int carried = 1 << (int(unit.x) - largest_term_exponent() - bits);
    return uvec2(0u, uint(is_positive ? carried : -carried));
}

// --- sums of the image ---

// A value, in units of the image's sums. No term exceeds 2^unit.x.
float scaled(float value)
{
    if (sums_are_floats()) return value;
    int own = int(exponent_of(value)) - 126;
    int bits = own + int(unit.x) - largest_term_exponent();
    return own > -126 ? mantissa_of(value) * power_of_2(clamp(bits, -126, 126)) : 0.0;
}

// Rounds a term to the nearest integer, in two words, low word first.
uvec2 to_words(float term)
{
    if (abs(term) < 2147483648.0) {
        int whole = int(roundEven(term));
        return uvec2(uint(whole), uint(whole >> 31));
    }
    float high = floor(term * (1.0 / 4294967296.0));
    return uvec2(uint(term - high * 4294967296.0), uint(int(high)));
}

// Adds `words` to a pair of words to which other threads may add at the same time.
#define ADD_WORDS(low, high, words)                                                                                    \
    {                                                                                                                  \
        uint add_carried = (words).y;                                                                                  \
        if ((words).x != 0u) {                                                                                         \
            uint add_old = atomicAdd(low, (words).x);                                                                  \
            add_carried += add_old + (words).x < add_old ? 1u : 0u;                                                    \
        }                                                                                                              \
        if (add_carried != 0u) atomicAdd(high, add_carried);                                                           \
    }
