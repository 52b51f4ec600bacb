// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Uniforms of all passes of the family listmode. Axes are the predominant one, p, and the two
// across it, u and v, ascending; the image is worked on slice by slice: voxel (u, v) of slice s is
// at (s size.z + v) size.y + u.
#include "common/bindings.h"

// Words that a group shares; the program that has them says how many.
#ifndef CELLS
#define CELLS 8000
#endif

#ifdef KEPT
// Uniforms for lines that are kept (docs/method/listmode.md, "Backend compute"): one pass has those of all axes.
struct Frame {
    ivec4 size;    // as below; all lines
    ivec4 strides; // as below
    ivec4 slab;    // slices that a group holds at once; nothing; nothing; whether there are lines
    vec4 voxel_mm; // as below
    vec4 unit;     // as below
};

layout(std140, binding = LR_BIND_PASS) uniform Pass {
    Frame frames[3]; // by axis; numbers of frame f begin at f times the voxels of the grid
    vec4 tube;       // as below
    ivec4 range;     // the first job or line, and behind the last one; whether there is time of flight; where
                     // lines with it begin among those with other values
    ivec4 part;      // as of listmode/events.glsl: the first number selected; selected ones; whether places
                     // are listed; whether there are values
    ivec4 values_at; // the first place of the window, places in it, where they, or the image, begin; whether
                     // places outside of the window are another pass's
};

ivec4 size, strides, slab; // of the frame at hand
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
layout(std140, binding = LR_BIND_PASS) uniform Pass {
    ivec4 size;     // slices, voxels along u and v; lines at hand
    ivec4 strides;  // of p, u, v in the grid's order; voxels of the grid
    ivec4 window;   // slices of this pass, of exact elements planes: the first, and behind the last; whether
                    // what stands there is added to; where the values, or the image, begin in their buffer
    ivec4 slab;     // what a group holds at once: slices, rows along v, and in how many bands of rows a
                    // slice comes; lines that a group takes one after the other. Of exact elements
                    // sample points of a voxel along p, u and v; elements that a line has room for
    vec4 voxel_mm;  // along p, u, v; elements that an event has room for
    // Squares of distances are told times tube.w: the exponent of the Gaussian, or the square of entries of
    // the table. The largest distance in mm; by how much shares fall beyond half the width; the square
    // of the largest distance; tube.w per mm^2. Of exact elements: what an angle of a point is its
    // share of a voxel's element by; 1 / slab.xyz
    vec4 tube;
    vec4 unit; // bits of a term; exponent that no element reaches; the square at half the width, or the
               // last entry of the table; LR_EVENTS_CELL_MOST over the largest element
};
#endif
