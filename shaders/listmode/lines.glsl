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
// 3: how far the middle of the first slice is from the centre of time of flight, or of what counts of
//    it where it is the only one; the way through a slice; what of it counts in the first one and in
//    the last one. In mm, or in standard deviations with time of flight
layout(std430, binding = LR_BIND_LIST_LINES) LINES_ACCESS buffer Lines {
    uvec4 lines[];
};
