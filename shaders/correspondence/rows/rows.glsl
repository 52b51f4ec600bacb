// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Common part of the passes that make rows from lists of elements. Each row has a table of LORs, with a value for each
// LOR and point of the row. The slots of a table are divided into shares, one per thread. For sorting, the elements of
// a row are divided in the same way. A pass with another group size defines LIST_GROUP.
#include "common/bindings.h"

#ifdef LIST_GROUP
layout(local_size_x = LIST_GROUP) in;
#else
layout(local_size_x = LR_SORT_GROUP) in;
#endif

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    uint total;       // capacity of the list, in elements; or how many numbers place.comp replaces
    uint share;       // numbers, or slots of a table, per thread
    uint num_shares;  // shares in total
    uint row_shares;  // shares of a row
    uint slot_bits;   // a row's table has 2^slot_bits slots
    uint num_points;  // points of a row in this pass
    uint per_row;     // points of a row in total
    uint first_point; // number of this pass's first point
    uint shift;       // lowest bit of the digit in a LOR number
};

uint own_share()
{
    return gl_GlobalInvocationID.x;
}
