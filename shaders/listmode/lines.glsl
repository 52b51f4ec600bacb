// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Lines through slices, as written by listmode/prepare.comp. Crossings are in fixed point with 2^32 units per voxel, so
// they are exact at any distance. The including file defines LINES_ACCESS.
#include "common/bindings.h"

// The buffer has part 0 of all lines, then part 1 of all lines, and so on. The parts of a line are:
// 0: where the line crosses the middle of slice `first`, along u and v: whole voxels, and the fraction in units of
//     2^-32 voxel
// 1: change of this position from slice to slice, in the same format
// 2: first slice; number of slices; index of the value; value. Kept lines have the event's number and the line's axis
//     (+ 4 if there is TOF) in place of the last two.
// 3: distance from the TOF centre to the middle of the first slice (if there is only one slice: to the middle of the
//     line's part in it); length of the line in a whole slice, in the first slice, and in the last slice. All are in
//     standard deviations with TOF, otherwise in mm.
// 4: with BINS, half of the TOF bin in standard deviations; the rest is unused
// Lines of exact elements (listmode/exact_prepare.comp) have planes and sample points instead of slices and voxels.
// Their other parts are:
// 3: distance along the line from the face at the lower end to the first plane, mm; distance along the line from plane
//     to plane, mm; length of the line, mm; unused
// 4: distance from the crossing, in points along u and v, up to which points of the first plane may have elements;
//     increase of these two distances per plane
// 5: face at the lower end: components along u and v of its axis `across`, times the distance of neighbouring points;
//     the same for its axis `along`
// 6: the same for its normal; cosines of the angles between its axes `across` and `along` and the line towards the face
// 7: cosine for its normal, with the opposite sign; half of its edges, mm; its numbers of pieces: across + 256 * along
// 8 to 10: parts 5 to 7 for the face at the upper end
// 11, 12: cosines of the angles between the axes of the two faces (listmode/exact_line.glsl)
// 13: with TOF, in standard deviations from its centre: position of the first plane; increase of this position per
//     plane; half of a voxel's extent; and 1 / extent, 1/mm
// 14: with TOF, increase of the position per step of a point along p, u and v; half of the TOF bin
layout(std430, binding = LR_BIND_LIST_LINES) LINES_ACCESS buffer Lines
{
    uvec4 lines[];
};
