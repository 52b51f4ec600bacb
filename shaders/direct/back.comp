#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Back-projection of one view: image(v) = sum of K_v(d) histo(v + d), K_v being the target's kernel.
//
// variants: BUFFERS=1
#include "direct/gather.glsl"

ivec4 rows;

#define GATHER_ROW(j) rows[j]
#define GATHER_COLUMN(column)
#define GATHER_OFFSET(i) (i)

void main()
{
    if (!find_outputs()) return;
    rows = ivec4(kernel_of(first_column), kernel_of(first_column + to_next), kernel_of(first_column + 2 * to_next),
                 kernel_of(first_column + 3 * to_next));
    GATHER()
    store_sums();
}
