// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The scale of a back-projection's sums: an exponent that no term reaches. An event that sees almost nothing has a very
// large value. A scale for this value could round all other terms to 0, or leave too few digits for voxels with small
// values. If values differ too much for one scale, the sums are therefore floats, which are stored in the low words.
// The exponent b of a value is that of the float format: the size of the value is below 2^(b - 126). Values with b = 0
// count as 0.
#include "listmode/pass.glsl"

layout(std430, binding = LR_BIND_LIST_SCALE) buffer Scale
{
    uint largest_term;   // exponent of the largest term of lines with values larger than usual, plus
                         // LR_EVENTS_EXPONENT; 0 = there are no such lines
    uint usual;          // usual exponent: at most a 32nd of all values have a larger one
    uint least;          // smallest exponent of the values that count
    uint exponents[256]; // number of values with each exponent
    uint num_others[2];  // numbers of kept lines with values of unusual size: without TOF, with TOF
};

uint exponent_of(float value)
{
    return floatBitsToUint(value) >> 23 & 255u;
}

// The usual exponent of values, the exponent of the largest term, and a flag that is true if the sums are floats. Each
// thread reads these numbers from the buffer only once. Otherwise, devices would read them again after every addition
// to memory.
uint known_usual;
int known_exponent;
bool has_float_sums;

void read_scale()
{
    int usual_term = int(usual) - 126 + int(unit.y);
    known_usual = usual;
    known_exponent = max(int(largest_term) - LR_EVENTS_EXPONENT, usual_term);
    has_float_sums =
        known_exponent > usual_term + LR_EVENTS_SPREAD || int(usual) - int(least) > int(unit.x) - LR_EVENTS_LEAST_BITS;
}

// Returns an exponent e such that every term is below 2^e in size.
int largest_term_exponent()
{
    return known_exponent;
}

bool sums_are_floats()
{
    return has_float_sums;
}
