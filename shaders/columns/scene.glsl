// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The scene that src/render/columns/scene.c uploads for the column passes; lengths in mm.
#include "common/bindings.h"

#ifndef COLUMN_GROUP
#define COLUMN_GROUP 64
#endif
#ifndef RAYS
#define RAYS 4
#endif

#ifndef COLUMN_STRIPS
#define COLUMN_STRIPS 64
#endif
#ifndef COLUMN_COLUMNS
#define COLUMN_COLUMNS 1
#endif
#ifndef COLUMN_CELLS
#define COLUMN_CELLS 66
#endif

layout(local_size_x = COLUMN_GROUP) in;

// Transaxially a module is a segment through `centre` along `tangent`; both in the plane across the
// columns. Axial crystals are counted along the column here, whatever the module's v.
struct ColumnModule {
    vec4 centre; // across (2), along; w: +1 where crystals are numbered along the column, else -1
    vec4 rest;   // what rounding the centre to float left over; w: number of its first cell
    vec4 frame;  // tangent (2), inward normal (2)
    vec4 cells;  // transaxial pitch and face, axial pitch and face
    ivec4 counts; // crystals transaxial and axial; steps of the crystal number along them
    ivec4 around; // place around the axis of transaxial crystal 0, and step from one to the next
};
layout(std430, binding = LR_BIND_COLUMN_MODULES) readonly buffer ColumnModules {
    ColumnModule column_modules[];
};

// The value of transaxial crystals p of i, r of j and axial ones q of i, s of j (numbered as in the
// scanner) stands at first + ((p nr + r) nq + q) ns + s: neighbours along the axis are neighbours in
// memory, and a strip's values a block.
struct ColumnPair {
    uint i, j;  // i < j
    uint first; // in the window
    uint mask;  // index of its mask; LR_NONE where all LORs are in coincidence
    uint swapped; // exact mode: 1 where j is the primary, so that every pass has the same elements
    uint unused[3];
    dvec4 closer; // distance² to i less distance² to j of a point: w + xyz . (across, along)
};
layout(std430, binding = LR_BIND_COLUMN_PAIRS) readonly buffer ColumnPairs {
    ColumnPair column_pairs[];
};

// Coordinates of the sample points, each a float and what its rounding left over: first those of the
// two axes across, then along the columns; then the way to these from the column's origin. With POINT_LIST: of single points, two across and one
// along each; the group's one is a column of its own.
layout(std430, binding = LR_BIND_COLUMN_POINTS) readonly buffer ColumnPoints {
    vec2 column_points[];
};

layout(std140, binding = LR_BIND_PASS) uniform Pass {
    ivec4 num_points; // across (2), along
    ivec4 num_samples; // points per voxel likewise; rounds of common/loops.glsl
    ivec4 first;       // forward: module pair of the groups; back: in y voxel row, z point across; rows: module
                       // pair, point
    ivec4 count;       // pairs of the window, for rows their end; back: end of points across, rows: elements that
                       // the list has room for; shares, voxels
    vec4 spacing_mm;   // of points, across (2), along
    vec4 origin;       // along the columns, of cells: a float and what its rounding left over
    ivec4 angles;      // LORs interleaved by angle: into how many parts (0: all are taken), which one; angles
};

// True where the part has the LORs of transaxial crystals pr.x of module i and pr.y of j (lr_lors_angle).
bool is_taken(uint i, uint j, ivec2 pr)
{
    if (angles.x == 0) {
        return true;
    }
    ivec2 first = ivec2(column_modules[i].around.x, column_modules[j].around.x);
    ivec2 place = first + ivec2(column_modules[i].around.y, column_modules[j].around.y) * pr;
    return (place.x + place.y) % angles.z % angles.x == angles.y;
}

// Passes call it in the end.
#ifdef LIMITED_LOOPS
#include "common/loops.glsl"

layout(std430, binding = LR_BIND_COLUMN_STATE) writeonly buffer State {
    uint loops_were_ended;
};

void check_loops()
{
    if (were_loops_ended(num_samples.w)) {
        loops_were_ended = 1u;
    }
}
#else
void check_loops()
{
}
#endif

// Along the column, from its origin: the middles of cells, those of a stack of modules one after the
// other, between two that are far away.
layout(std430, binding = LR_BIND_COLUMN_MIDDLES) readonly buffer StackMiddles {
    float stack_middles[];
};

int point_across(int axis, int k)
{
    return axis == 0 ? k : num_points.x + k;
}

#ifdef POINT_LIST
int point_index; // of the group

vec2 point_along(int k)
{
    return column_points[3 * point_index + 2];
}
#else
vec2 point_along(int k)
{
    return column_points[num_points.x + num_points.y + k];
}
#endif

// a - b where both are given as a float and what its rounding left over.
float difference(float a, float a_rest, float b, float b_rest)
{
    precise float leading = a - b;
    precise float trailing = a_rest - b_rest;
    precise float sum = leading + trailing;
    return sum;
}

// Distance of the column's point k to its origin.
float way_along(int k)
{
#ifdef POINT_LIST
    vec2 point = point_along(k);
    return difference(point.x, point.y, origin.x, origin.y);
#else
    return column_points[num_points.x + num_points.y + num_points.z + k].x;
#endif
}
