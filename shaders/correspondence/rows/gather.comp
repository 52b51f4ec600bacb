#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Copies the used slots of tables to rows, or counts them (COUNT).
//
// reads: tables as collect.comp writes them; the index of the first output of each share
// writes: LORs and means over the row's points, row by row, and the starts of the rows; with COUNT
//            numbers of slots
// shape: one thread for each share of slots
// invariant: a mean's terms are added in the order of the points, in double
// variants:  ; REPEATS=1; COUNT=1
#include "correspondence/rows/rows.glsl"

layout(std430, binding = LR_BIND_ROWS_KEYS) readonly buffer Keys
{
    uint keys[];
};
layout(std430, binding = LR_BIND_ROWS_TO) writeonly buffer To
{
    uvec2 to[]; // LOR, bits of the value
};
layout(std430, binding = LR_BIND_ROWS_PLACES) buffer Places
{
    uint places[];
};
layout(std430, binding = LR_BIND_ROWS_STARTS) buffer Starts
{
    uvec2 found_by_collect;
    uint starts[]; // [rows + 1]
};

#ifdef REPEATS
layout(std430, binding = LR_BIND_ROWS_VALUES) readonly buffer Values
{
    uvec2 head;
    uvec2 values[]; // lower and upper word of sums in fixed point (common/fixed.glsl); all are >= 0
};

double value_of(uvec2 value)
{
    return (double(value.y) * 4294967296.0lf + double(value.x)) / 2305843009213693952.0lf;
}
#else
layout(std430, binding = LR_BIND_ROWS_VALUES) readonly buffer Values
{
    float values[];
};

double value_of(float value)
{
    return double(value);
}
#endif

// The mean of a slot's values over the row's points. first: index of the slot's value for the first point.
float mean_of(uint first)
{
    double sum = 0.0lf;
    for (uint k = 0u; k < num_points; k++) sum += value_of(values[first + (k << slot_bits)]);
    return float(sum / double(per_row));
}

void main()
{
    if (own_share() >= num_shares) return;
    uint end = (own_share() + 1u) * share;
#ifdef COUNT
    uint number = 0u;
    for (uint slot = own_share() * share; slot < end; slot++) number += keys[slot] != 0u ? 1u : 0u;
    places[own_share()] = number;
#else
    uint place = places[own_share()];
    if (own_share() % row_shares == 0u) starts[own_share() / row_shares] = place;
    for (uint slot = own_share() * share; slot < end; slot++) {
        uint key = keys[slot];
        if (key != 0u) {
            uint first = slot + ((own_share() / row_shares * (num_points - 1u)) << slot_bits);
            to[place] = uvec2(key - 1u, floatBitsToUint(mean_of(first)));
            place++;
        }
    }
    if (own_share() == num_shares - 1u) starts[num_shares / row_shares] = place;
#endif
}
