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
// 2: the first slice, how many they are, where the value stands, the value; of lines that are kept the
//    event's number, and the axis + 4 where there is time of flight
// 3: how far the middle of the first slice is from the centre of time of flight, or of what counts of
//    it where it is the only one; the way through a slice; what of it counts in the first one and in
//    the last one. In mm, or in standard deviations with time of flight
// 4: with BINS half of the bin of time of flight, in standard deviations; nothing
// Planes of exact elements (listmode/exact_prepare.comp) and points of samples stand for slices and voxels:
// 3: where the first plane is, from the face at the lower end, in mm along the line; from plane to plane; the
//    line's length; nothing
// 4: how far beside the crossing there may be elements in the first plane, in points along u and v; by how
//    much farther from plane to plane
// 5: of the face at the lower end: what its axes `across` and `along` have of a point's step along u and v
// 6: the same of its normal; cosines of its axes with the line on its way to it
// 7: of the normal, turned round; half of its edges in mm; pieces in which it is seen, across + 256 along
// 8 to 10: of the other face
// 11, 12: cosines of the one's axes with the other's (listmode/exact_line.glsl)
// 13: with time of flight, in standard deviations from its centre: the first plane; from plane to plane; half
//    of a voxel's extent; and one over the extent in mm
// 14: of a point's step along p, u and v; half of the bin of time of flight
layout(std430, binding = LR_BIND_LIST_LINES) LINES_ACCESS buffer Lines {
    uvec4 lines[];
};
