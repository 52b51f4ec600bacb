// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The scale of a back-projection's sums: an exponent that no term reaches. Where values differ too
// much for one scale, sums are floats instead, the low word of each: else an event that sees next to nothing has a
// ratio by which all others are rounded to 0, and voxels where all values are small lose their digits. Exponents of values
// are those of floats, b, which says that a value is below 2^(b - 126) in size; what has b = 0 counts as 0.
#include "listmode/pass.glsl"

layout(std430, binding = LR_BIND_LIST_SCALE) buffer Scale {
    uint largest_term; // of lines with larger values than usual: exponent + LR_EVENTS_EXPONENT; 0: there
                       // are no such lines
    uint usual;        // all but a 32nd of the values have at most this exponent
    uint least;        // no value that counts has a smaller one
    uint exponents[256]; // how many values have it
    uint num_others[2];  // of lines that are kept how many have other values than usual, without and with
                         // time of flight
};

uint exponent_of(float value)
{
    return floatBitsToUint(value) >> 23 & 255u;
}

// The scale in the buffer, read once by each thread for the functions below: devices would read it
// anew after every addition to memory.
uint known_usual;
int known_exponent;
bool has_float_sums;

void read_scale()
{
    int usual_term = int(usual) - 126 + int(unit.y);
    known_usual = usual;
    known_exponent = max(int(largest_term) - LR_EVENTS_EXPONENT, usual_term);
    has_float_sums = known_exponent > usual_term + LR_EVENTS_SPREAD ||
                     int(usual) - int(least) > int(unit.x) - LR_EVENTS_LEAST_BITS;
}

// Terms are below 2 to this in size.
int largest_term_exponent()
{
    return known_exponent;
}

bool sums_are_floats()
{
    return has_float_sums;
}
