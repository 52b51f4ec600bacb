// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The scene that src/correspondence/compute/columns/scene.c uploads for the column passes; lengths in mm.
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

// Transaxially, a module is a segment through `centre` along `tangent`, both in the plane across the columns. Here,
// axial crystals are counted along the column, even if the module's v has the opposite direction.
struct ColumnModule {
    vec4 centre;  // across (2), along; w: +1 if crystals are numbered along the column, else -1
    vec4 rest;    // rounding error of the centre; w: number of the module's first cell
    vec4 frame;   // tangent (2), inward normal (2)
    vec4 cells;   // transaxial pitch and face, axial pitch and face, mm
    ivec4 counts; // transaxial and axial crystals; steps of the crystal number along the two
    ivec4 around; // angular place of transaxial crystal 0, and step to the next one
};
layout(std430, binding = LR_BIND_COLUMN_MODULES) readonly buffer ColumnModules
{
    ColumnModule column_modules[];
};

// LORs of a pair. Transaxial crystals p of i and r of j, axial crystals q of i and s of j (numbered as in the scanner)
// have their value at first + ((p nr + r) nq + q) ns + s. Axial neighbours are therefore neighbours in memory, and a
// strip's values are one block.
struct ColumnPair {
    uint i, j;    // i < j
    uint first;   // first value in the window
    uint mask;    // index of its mask; LR_NONE = all LORs are in coincidence
    uint swapped; // exact mode: 1 if j is the primary; with this choice, every pass computes the same elements
    uint unused[3];
    dvec4 closer; // squared distance of a point to i minus its squared distance to j: w + xyz . (across, along)
};
layout(std430, binding = LR_BIND_COLUMN_PAIRS) readonly buffer ColumnPairs
{
    ColumnPair column_pairs[];
};

// Coordinates of the sample points, each a float and its rounding error: first along the two axes across, then along
// the columns, then the distance of the points along the columns from the column's origin. POINT_LIST: single points,
// each with two coordinates across and one along; the group's point is treated as a column.
layout(std430, binding = LR_BIND_COLUMN_POINTS) readonly buffer ColumnPoints
{
    vec2 column_points[];
};

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    ivec4 num_points;  // number across (2), along
    ivec4 num_samples; // points per voxel across (2), along; rounds of common/loops.glsl
    ivec4 first;       // forward: first module pair; back: y = voxel row, z = point across; rows: module pair, point
    ivec4 count;       // pairs of the window (rows: end of the pairs); back: end of points across (rows: capacity of
                       // the list, in elements); shares; voxels
    vec4 spacing_mm;   // spacing of points across (2), along
    vec4 origin;       // column's origin for cells: a float and its rounding error
    ivec4 angles;      // LORs interleaved by angle: number of parts (0 = all LORs are taken); this part; places around
                       // the axis; number of parts from one kind of rows to the next
};

// True if this part has LORs of transaxial crystals pr.x of module i and pr.y of j, of any of the
// four kinds of rows (lr_has_angle).
bool is_taken(uint i, uint j, ivec2 pr)
{
    if (angles.x == 0) return true;
    ivec2 first = ivec2(column_modules[i].around.x, column_modules[j].around.x);
    ivec2 place = first + ivec2(column_modules[i].around.y, column_modules[j].around.y) * pr;
    int angle = (place.x + place.y) % angles.z / 2;
    ivec4 parts = (ivec4(angle) + ivec4(0, 1, 2, 3) * angles.w) % angles.x;
    return any(equal(parts, ivec4(angles.y)));
}

// Each pass must call check_loops at its end.
#ifdef LIMITED_LOOPS
#include "common/loops.glsl"

layout(std430, binding = LR_BIND_COLUMN_STATE) writeonly buffer State
{
    uint loops_were_ended;
};

void check_loops()
{
    if (were_loops_ended(num_samples.w)) loops_were_ended = 1u;
}
#else
void check_loops() {}
#endif

// Middles of cells along the column, from its origin. For each stack, the cells of its modules follow in order, between
// two entries that are far away.
layout(std430, binding = LR_BIND_COLUMN_MIDDLES) readonly buffer StackMiddles
{
    float stack_middles[];
};

int point_across(int axis, int k)
{
    return axis == 0 ? k : num_points.x + k;
}

#ifdef POINT_LIST
int point_index; // index of the group's point

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

// a - b; both are given as a float and its rounding error.
float difference(float a, float a_rest, float b, float b_rest)
{
    precise float leading = a - b;
    precise float trailing = a_rest - b_rest;
    precise float sum = leading + trailing;
    return sum;
}

// Distance of the column's point k from its origin.
float way_along(int k)
{
#ifdef POINT_LIST
    vec2 point = point_along(k);
    return difference(point.x, point.y, origin.x, origin.y);
#else
    return column_points[num_points.x + num_points.y + num_points.z + k].x;
#endif
}

// A crystal's number across the columns and along them: its transaxial and its axial number.
ivec2 crystal_numbers(ColumnModule module, int number)
{
    ivec4 n = module.counts;
    return n.z == 1 ? ivec2(number % n.x, number / n.x) : ivec2(number / n.y, number % n.y);
}
