// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Lines through slices, as written by listmode/prepare.comp. Crossings are in fixed point with 2^32 units per voxel, so
// they are exact at any distance. The including file defines LINES_ACCESS.
#include "common/bindings.h"

// The buffer holds part 0 of all lines, then part 1 of all lines, and so on:
// 0: crossing in the middle of slice `first`, along u and v: whole voxels and 2^-32ths
// 1: change of the crossing from slice to slice, in the same format
// 2: first slice, number of slices, index of the value, value; for kept lines the event's number
//     and its axis (+ 4 if there is TOF) instead of the last two
// 3: distance of the first slice's middle from the TOF centre (of its counted part, if it is the
//     only slice); path through a slice; counted part of this path in the first slice, and in the
//     last one; in standard deviations with TOF, else in mm
// 4: with BINS half of the TOF bin, in standard deviations; unused
// Lines of exact elements (listmode/exact_prepare.comp) have planes and sample points instead of
// slices and voxels:
// 3: distance of the first plane from the face at the lower end, in mm along the line; distance
//     from plane to plane; the line's length; unused
// 4: reach around the crossing that may have elements in the first plane, in points along u and v;
//     its growth from plane to plane
// 5: face at the lower end: components along its axes `across` and `along` of a point's step along
//     u and v
// 6: components along its normal of the same steps; cosines of its axes with the line in the
//     direction to the face
// 7: cosine of its normal, with the opposite sign; half of its edges in mm; its pieces, across +
//     256 along
// 8 to 10: the same for the other face
// 11, 12: cosines between the axes of the two faces (listmode/exact_line.glsl)
// 13: with TOF, in standard deviations from its centre: place of the first plane; its change from
//     plane to plane; half of a voxel's extent; and 1 / extent in 1/mm
// 14: with TOF, change of the place with a point's step along p, u and v; half of the TOF bin
layout(std430, binding = LR_BIND_LIST_LINES) LINES_ACCESS buffer Lines
{
    uvec4 lines[];
};
