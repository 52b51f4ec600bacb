// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Uniforms of all passes of the family listmode. The predominant axis is p; the two others are u
// and v, in ascending order. The image is stored slice by slice: the index of voxel (u, v) of slice
// s is (s size.z + v) size.y + u.
#include "common/bindings.h"

// The number of 32-bit words of a group's shared memory. Programs that use such memory define CELLS.
#ifndef CELLS
#define CELLS 8000
#endif

#ifdef KEPT
// Uniforms for kept lines (docs/method/listmode.md, "Backend compute"). One pass has the uniforms
// of all axes.
struct Frame {
    ivec4 size;    // see the block below, except w: number of all lines, not only of the current lines
    ivec4 strides; // see the block below
    ivec4 slab;    // x: number of slices that a group can hold; y, z: unused; w: 1 if there are lines
    vec4 voxel_mm; // see the block below
    vec4 unit;     // see the block below
};

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    Frame frames[3]; // one for each axis; the image of frame f begins at index f * (number of the grid's voxels)
    vec4 tube;       // see the block below
    ivec4 range;     // x: first job or line; y: one after the last; z: 1 if there is TOF; w: index of the first line
                     // with TOF among the lines with values of unusual size
    ivec4 part;      // as in listmode/events.glsl. x: number of the first selected event; y: number of selected events;
                     // z: 1 if there is a map of places; w: 1 if there are values
    ivec4 values_at; // x: first place of the window; y: number of places; z: index of the first place's value, or of
                     // the image; w: 1 if another pass writes the values outside the window, or, in order.comp, 1 to
                     // add to the old image
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
    ivec4 size;    // x: slices; y, z: voxels along u and v; w: number of current lines
    ivec4 strides; // x, y, z: strides of p, u, v in the grid's order; w: number of the grid's voxels
    ivec4 window;  // slices (exact elements: planes) of this pass. x: first; y: one after the last; z: 1 to add to the
                   // old contents; w: index in its buffer of the first value, or of the image
    ivec4 slab;    // part of the image that a group can hold. x: slices; y: rows along v; z: bands of rows per slice;
                   // w: number of lines that a group takes one after another. Exact elements: sample points of a voxel
                   // along p, u and v; w: capacity for a line's elements
    vec4 voxel_mm; // edges along p, u, v; w: unused
    // Shares of voxels in the tube of response. x: largest distance from the line in mm. y: decrease of the shares
    // beyond half the width. w: factor, per mm^2, that converts a squared distance to the Gaussian's exponent, or to
    // the square of a table index. z: square of x, times w. Exact elements: x: factor from a point's solid angle to its
    // contribution to a voxel's element; yzw: 1 / slab.xyz.
    vec4 tube;
    vec4 unit; // x: bits of a term; y: exponent that no element reaches; z: (half the width)^2 tube.w, or the last
               // index of the table; w: LR_EVENTS_CELL_MOST / largest element
};
#endif
