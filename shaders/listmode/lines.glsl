// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Lines on their way through slices, as listmode/prepare.comp leaves them. Crossings are in fixed point,
// of which 2^32 stand for a voxel: whole voxels and parts of one are exact however far out they are.
// Define LINES_ACCESS before it.
#include "common/bindings.h"

// Each part of all lines, then the next part:
// 0: the crossing in the middle of slice `first`, along u and v: whole voxels and 2^-32ths
// 1: its steps from slice to slice, likewise
// 2: the first slice, how many they are, where the value stands, the value
// 3: without time of flight what of the first slice, of one between, and of the last one counts in mm;
//    with it where the first slice begins and a slice's way, in standard deviations from the
//    centre, and between which places it counts
layout(std430, binding = LR_BIND_LIST_LINES) LINES_ACCESS buffer Lines {
    uvec4 lines[];
};
