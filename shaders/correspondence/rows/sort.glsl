// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sorting of rows by one digit of their LOR numbers. Each thread works on one share of a row, in order.
#include "correspondence/rows/rows.glsl"

layout(std430, binding = LR_BIND_ROWS_FROM) readonly buffer From
{
    uvec2 from[]; // LOR, bits of the value
};
layout(std430, binding = LR_BIND_ROWS_STARTS) readonly buffer Starts
{
    uvec2 found_by_collect;
    uint starts[]; // [rows + 1]
};

const uint NUM_DIGITS = 1u << LR_SORT_BITS;

shared uint numbers[LR_SORT_GROUP << LR_SORT_BITS]; // [digit][thread]; a thread uses only its own numbers

// This thread's number for a digit.
#define NUMBER(digit) numbers[(digit)*uint(LR_SORT_GROUP) + gl_LocalInvocationID.x]

uint digit_of(uvec2 element)
{
    return element.x >> shift & (NUM_DIGITS - 1u);
}

// The first element of the thread's share, and one after the last.
uvec2 own_range()
{
    uint row = own_share() / row_shares;
    uint begin = starts[row], end = starts[row + 1u];
    uint length = (end - begin + row_shares - 1u) / row_shares;
    uint first = begin + own_share() % row_shares * length;
    return min(uvec2(first, first + length), uvec2(end));
}

// Index of the entry for a digit in this thread's share. The order of the entries is [row][digit][share].
uint number_at(uint digit)
{
    return (own_share() / row_shares * NUM_DIGITS + digit) * row_shares + own_share() % row_shares;
}
