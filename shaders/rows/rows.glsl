// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Common part of the passes that make rows of lists of elements: each row has a table of LORs, with a value
// for each of its points, whose slots and, once they are sorted, whose sums are divided among as many
// threads. Define LIST_GROUP for passes with other groups.
#include "common/bindings.h"

#ifdef LIST_GROUP
layout(local_size_x = LIST_GROUP) in;
#else
layout(local_size_x = LR_SORT_GROUP) in;
#endif

layout(std140, binding = LR_BIND_PASS) uniform Pass {
    uint total;       // elements that the list has room for, or numbers that become places
    uint share;       // of these, or of a table's slots, for a thread
    uint num_shares;  // of all
    uint row_shares;  // of a row
    uint slot_bits;   // a row's table has 2^n slots
    uint num_points;  // of a row, here
    uint per_row;     // and in all
    uint first_point; // number of the first one
    uint shift;       // bit of the LOR that the digit begins at
};

uint own_share()
{
    return gl_GlobalInvocationID.x;
}
