// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// What all passes of the family listmode are told. Axes are the predominant one, p, and the two
// across it, u and v, ascending; the image is worked on slice by slice: voxel (u, v) of slice s is
// at (s size.z + v) size.y + u.
#include "common/bindings.h"

layout(std140, binding = LR_BIND_PASS) uniform Pass {
    ivec4 size;     // slices, voxels along u and v; lines at hand
    ivec4 strides;  // of p, u, v in the grid's order; voxels of the grid
    ivec4 window;   // slices of this pass: the first, and behind the last; whether what stands there is
                    // added to; where the values, or the image, begin in their buffer
    ivec4 slab;     // what a group holds at once: slices, rows along v, and in how many bands of rows a
                    // slice comes; lines that a group takes one after the other
    vec4 voxel_mm;  // along p, u, v; elements that an event has room for
    vec4 tube;      // square of the largest distance; fall per mm^2 beyond half the width; square of
                    // half the width; the Gaussian's exponent per mm^2, or entries of the table per mm
    vec4 unit;      // bits of a term; exponent that no element reaches; last entry of the table
};
