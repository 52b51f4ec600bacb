// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sorting rows by a digit of their LORs: a thread has a share of a row and goes through it in order.
#include "rows/rows.glsl"

layout(std430, binding = LR_BIND_ROWS_FROM) readonly buffer From {
    uvec2 from[]; // LOR, bits of the value
};
layout(std430, binding = LR_BIND_ROWS_STARTS) readonly buffer Starts {
    uvec2 found_by_collect;
    uint starts[]; // [rows + 1]
};

const uint NUM_DIGITS = 1u << LR_SORT_BITS;

shared uint numbers[LR_SORT_GROUP << LR_SORT_BITS]; // [digit][thread], each of its own thread

// The number of a digit, of this thread.
#define NUMBER(digit) numbers[(digit) * uint(LR_SORT_GROUP) + gl_LocalInvocationID.x]

uint digit_of(uvec2 element)
{
    return element.x >> shift & (NUM_DIGITS - 1u);
}

// First and end of the thread's own share.
uvec2 own_range()
{
    uint row = own_share() / row_shares;
    uint begin = starts[row], end = starts[row + 1u];
    uint length = (end - begin + row_shares - 1u) / row_shares;
    uint first = begin + own_share() % row_shares * length;
    return min(uvec2(first, first + length), uvec2(end));
}

// Index of a digit's number: places become those of rows, in each of digits, in each of shares.
uint number_at(uint digit)
{
    return (own_share() / row_shares * NUM_DIGITS + digit) * row_shares +
           own_share() % row_shares;
}
