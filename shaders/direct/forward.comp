#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Forward projection of one view: histo(n) = sum of K_{n + d}(-d) image(n + d). K_{n + d} is the source's kernel, taken
// at the mirrored offset.
//
// variants: BUFFERS=1
#include "direct/gather.glsl"

int row;

#define GATHER_ROW(j) row
#define GATHER_COLUMN(column) row = kernel_of(column);
#define GATHER_OFFSET(i) (counts.y - 1 - (i))

void main()
{
    if (!find_outputs()) return;
    row = 0;
    GATHER()
    store_sums();
}
