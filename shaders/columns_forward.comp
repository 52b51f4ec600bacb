#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Forward projection of the pairs of modules that columns.glsl describes: each LOR gathers its
// elements times the voxels they belong to, all in one thread.
//
// reads:     column modules, pairs and points, masks, image [across 1][across 0][along]
// writes:    LOR values in column order
// shape:     groups (transaxial crystal pairs, stretches of axial crystal pairs, pairs of modules)
// invariant: sums are added in a fixed order
// variants:  EXACT=1; RAYS=4; EXACT=1 MASKS=1 ONE_POINT_ALONG=1
#include "common/columns.glsl"
#include "common/columns_tube.glsl"

layout(std430, binding = LR_BIND_COLUMN_IMAGE) readonly buffer Image {
    float voxels[];
};
layout(std430, binding = LR_BIND_OUTPUT) writeonly buffer Lors {
    float lors[];
};

STRIP_STORE(COLUMN_GROUP)
shared int rows[COLUMN_GROUP]; // of the strips: first voxel of the column
#ifndef EXACT
shared ivec2 columns[COLUMN_GROUP];
#endif

// The thread's LOR: its axial cells as primary and secondary.
struct Cells {
    Axial a, b;
    ivec2 qs;
    vec2 low;    // edges of their faces, from point 0
    vec2 offset; // and from the modules' middles
};

Cells make_cells(Axial a, Axial b, ivec2 qs)
{
    return Cells(a, b, qs, vec2(cell_low(a, qs.x), cell_low(b, qs.y)),
                 vec2(cell_offset(a, qs.x), cell_offset(b, qs.y)));
}

int first_voxel(ivec2 column)
{
    ivec2 voxel = column / num_samples.xy;
    return (voxel.y * (num_points.x / num_samples.x) + voxel.x) * (num_points.z / num_samples.z);
}

float voxel_value(int row, int k)
{
#ifdef ONE_POINT_ALONG
    return voxels[row + k];
#else
    return voxels[row + k / num_samples.z];
#endif
}

// Sum over the points of column n.
float column_sum(ColumnPair pair, int n, Cells cells)
{
    Strip strip = STRIP_GET(n);
    ivec2 range = points_between(strip, cells.low, vec2(cells.a.face, cells.b.face));
    int row = rows[n];
    float sum = 0.0;
    for (int k = range.x; k <= range.y; k++) {
#ifdef EXACT
        precise vec2 low = vec2(axial_way(cells.a, k), axial_way(cells.b, k)) + cells.offset;
        float weight = axial_weight(strip, cells.a, cells.b, cells.qs, low);
#else
        if (!strip.gentle &&
            farther_is_i(pair, column_across(columns[n]), k) != strip.i_is_primary) {
            continue;
        }
        float weight = axial_weight(strip, axial_from(cells.a, k), axial_from(cells.b, k),
                                    cells.qs, vec2(0.0));
#endif
        sum = fma(weight, voxel_value(row, k), sum);
    }
    return sum;
}

void main()
{
    int thread = int(gl_LocalInvocationIndex);
    ColumnPair pair = column_pairs[first.x + int(gl_WorkGroupID.z)];
    ColumnModule i = column_modules[pair.i], j = column_modules[pair.j];
    int pr = int(gl_WorkGroupID.x);
    int first_qs = int(gl_WorkGroupID.y) * COLUMN_GROUP;
    int num_axial = i.counts.y * j.counts.y;
    if (pr >= i.counts.x * j.counts.x || first_qs >= num_axial) {
        return;
    }
    int qs = first_qs + thread;
    Tube tube = make_tube(pair, ivec2(pr / j.counts.x, pr % j.counts.x));
    Axial on_i = make_axial(i, j.counts.y), on_j = make_axial(j, 1);
    ivec2 cells = ivec2(qs / j.counts.y, qs % j.counts.y);
    cells.x = i.centre.w > 0.0 ? cells.x : i.counts.y - 1 - cells.x;
    cells.y = j.centre.w > 0.0 ? cells.y : j.counts.y - 1 - cells.y;
    Cells forth = make_cells(on_i, on_j, cells);
#ifndef EXACT
    Cells back = make_cells(on_j, on_i, cells.yx);
#endif
    float sum = 0.0;
    for (int begin = 0; begin < tube.count; begin += COLUMN_GROUP) {
        barrier();
        strip_shapes[thread].x = 0.0;
        if (begin + thread < tube.count) {
            ivec2 column = tube_column(tube, begin + thread);
            if (column.x >= 0) {
                Strip strip = tube_strip(pair, tube, column, begin + thread);
                STRIP_PUT(thread, strip)
                rows[thread] = first_voxel(column);
#ifndef EXACT
                columns[thread] = column;
#endif
            }
        }
        barrier();
        int end = min(tube.count - begin, COLUMN_GROUP);
        for (int n = 0; qs < num_axial && n < end; n++) {
            if (strip_shapes[n].x > 0.0) {
#ifdef EXACT
                sum += column_sum(pair, n, forth);
#else
                sum += strip_places[n].y % 2u != 0u ? column_sum(pair, n, forth)
                                                    : column_sum(pair, n, back);
#endif
            }
        }
    }
    if (qs < num_axial) {
        Strip whole = no_strip; // of the mask, only the block and the roles matter
        whole.first = pair.first + uint(pr * num_axial);
        whole.i_is_primary = true;
        bool counts = true;
#ifdef MASKS
        counts = axial_allowed(pair, whole, cells);
#endif
        int points = num_samples.x * num_samples.y * num_samples.z;
        lors[whole.first + uint(qs)] = counts ? sum / float(points) : 0.0;
    }
}
