// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Uniforms of all passes of the family listmode. The predominant axis is p; the two others are u
// and v, in ascending order. The image is stored slice by slice: the index of voxel (u, v) of slice
// s is (s size.z + v) size.y + u.
#include "common/bindings.h"

// Words of shared memory of a group. The including program defines their number.
#ifndef CELLS
#define CELLS 8000
#endif

#ifdef KEPT
// Uniforms for kept lines (docs/method/listmode.md, "Backend compute"). One pass has the uniforms
// of all axes.
struct Frame {
    ivec4 size;    // see below; .w: all lines, not only the current ones
    ivec4 strides; // see below
    ivec4 slab;    // slices that a group holds at once; unused; unused; 1 if there are lines
    vec4 voxel_mm; // see below
    vec4 unit;     // see below
};

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    Frame frames[3]; // one for each axis; the image of frame f begins at f times the grid's voxels
    vec4 tube;       // see below
    ivec4 range;     // first job or line, and one after the last; 1 if there is TOF; index of the first line with TOF
                     // among the lines with other values
    ivec4 part;      // as in listmode/events.glsl: first selected number; how many are selected; 1 if places are
                     // listed; 1 if there are values
    ivec4 values_at; // first place of the window; number of places; index of the first place, or of the image; 1 if
                     // another pass handles places outside the window
};

ivec4 size, strides, slab; // values of the current frame
vec4 voxel_mm, unit;
int frame_begin;

void enter_frame(int axis)
{
    size = frames[axis].size;
    strides = frames[axis].strides;
    slab = frames[axis].slab;
    voxel_mm = frames[axis].voxel_mm;
    unit = frames[axis].unit;
    frame_begin = axis * strides.w;
}
#else
layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    ivec4 size;    // slices, voxels along u and v; current lines
    ivec4 strides; // strides of p, u, v in the grid's order; voxels of the grid
    ivec4 window;  // slices (exact elements: planes) of this pass: first, and one after the last; 1 to add to the old
                   // contents; index in its buffer of the first value, or of the image
    ivec4 slab;    // the part of the image that a group holds: slices; rows along v; bands of rows of a slice; w:
                   // number of lines that a group takes one after another. Exact elements: sample points of a voxel
                   // along p, u and v; capacity for a line's elements
    vec4 voxel_mm; // edges along p, u, v; w: capacity for an event's elements
    // Shares of voxels in the tube of response. x: largest distance from the line in mm. y: decrease of the shares
    // beyond half the width. z: square of x, multiplied by w. w: factor, per mm^2, from a squared distance to the
    // Gaussian's exponent or to the square of a table index. Exact elements: x: factor from a point's solid angle to
    // its contribution to a voxel's element; yzw: 1 / slab.xyz.
    vec4 tube;
    vec4 unit; // bits of a term; exponent that no element reaches; the square at half the width, or the last index of
               // the table; LR_EVENTS_CELL_MOST / largest element
};
#endif
