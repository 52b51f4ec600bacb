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

// Across the columns, a module is a segment through `centre` along `tangent`. Axial crystals are counted along the
// column, even if the module numbers them in the opposite direction.
struct ColumnModule {
    vec4 centre;  // x, y: across; z: along; w: +1 if crystals are numbered along the column, else -1
    vec4 rest;    // xyz: rounding error of the centre; w: number of the module's first cell
    vec4 frame;   // x, y: tangent; z, w: inward normal
    vec4 cells;   // mm. x, y: transaxial pitch and face; z, w: axial pitch and face
    ivec4 counts; // x, y: numbers of transaxial and of axial crystals; z, w: steps of the crystal number in these
                  // directions
    ivec4 around; // x: position around the axis of transaxial crystal 0; y: step to the next crystal's position
};
layout(std430, binding = LR_BIND_COLUMN_MODULES) readonly buffer ColumnModules
{
    ColumnModule column_modules[];
};

// The LORs of a pair. The LOR of transaxial crystals p of i and r of j, and axial crystals q of i and s of j (numbered
// as in the scanner), has its value at index first + ((p nr + r) nq + q) ns + s. Axial neighbours are therefore
// neighbours in memory, and a strip's values are one block.
struct ColumnPair {
    uint i, j;    // i < j
    uint first;   // first value in the window
    uint mask;    // index of the pair's mask; LR_NONE = all LORs are in coincidence
    uint swapped; // exact mode: 1 if j is the primary in all passes, which then compute the same bits
    uint unused[3];
    dvec4 closer; // for a point (across, along), w + xyz . (across, along) is the squared distance to i minus the
                  // squared distance to j
};
layout(std430, binding = LR_BIND_COLUMN_PAIRS) readonly buffer ColumnPairs
{
    ColumnPair column_pairs[];
};

// Coordinates of the sample points, each as a float and its rounding error. The buffer has the coordinates along the
// two axes across the columns, then those along the columns, and then those along the columns again, relative to the
// column's origin. POINT_LIST: the buffer has single points, each with two coordinates across and one along. The
// group's point is then treated as a column.
layout(std430, binding = LR_BIND_COLUMN_POINTS) readonly buffer ColumnPoints
{
    vec2 column_points[];
};

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    ivec4 num_points;  // numbers of points. x, y: across; z: along
    ivec4 num_samples; // numbers of points of a voxel. x, y: across; z: along; w: rounds for common/loops.glsl
    ivec4 first;       // forward: x: first pair. back: y: row of voxels; z: point across. rows: x: module pair; y:
                       // point
    ivec4 count;       // x: pairs of the window (rows: end of the pairs); y: back: end of points across (rows: capacity
                       // of the list, in elements); z: number of shares; w: number of voxels
    vec4 spacing_mm;   // distances of neighbouring points. x, y: across; z: along
    vec4 origin;       // x, y: the column's origin for cells, as a float and its rounding error; w: value of a sum of 1
                       // (take_sums.comp)
    ivec4 angles; // parts interleaved by angle. x: number of parts (0 = all LORs belong to this part); y: this part;
                  // z: number of positions around the axis; w: number by which the part of an angle changes from
                  // one kind of row pair to the next (lr_turn_shift)
};

// True if this part has LORs of transaxial crystals pr.x of module i and pr.y of module j, in any of the four kinds of
// rows (lr_has_angle).
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

// Middles of cells along the column, relative to the column's origin. Each stack has the cells of its modules in order,
// between two entries that are far away.
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

// a - b. Each of the two numbers is given as a float and its rounding error.
float difference(float a, float a_rest, float b, float b_rest)
{
    precise float leading = a - b;
    precise float trailing = a_rest - b_rest;
    precise float sum = leading + trailing;
    return sum;
}

// Distance of point k of the column from the column's origin.
float way_along(int k)
{
#ifdef POINT_LIST
    vec2 point = point_along(k);
    return difference(point.x, point.y, origin.x, origin.y);
#else
    return column_points[num_points.x + num_points.y + num_points.z + k].x;
#endif
}

// The crystal's numbers across and along the columns, that is its transaxial and its axial number.
ivec2 crystal_numbers(ColumnModule module, int number)
{
    ivec4 n = module.counts;
    return n.z == 1 ? ivec2(number % n.x, number / n.x) : ivec2(number / n.y, number % n.y);
}
