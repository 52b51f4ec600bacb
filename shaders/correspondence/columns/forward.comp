#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Forward projection in sampled mode of the pairs of modules that columns.glsl describes: each thread adds up the
// elements of one LOR times their voxels.
//
// reads:     column modules, pairs and points, masks, image [across 1][across 0][along]
// writes:    LOR values in column order
// shape:     groups (transaxial crystal pairs, stretches of axial crystal pairs, pairs of modules)
// invariant: sums are added in a fixed order
// variants:  RAYS=4; RAYS=2 MASKS=1 ONE_POINT_ALONG=1
#include "correspondence/columns/columns.glsl"
#include "correspondence/columns/tube.glsl"

layout(std430, binding = LR_BIND_COLUMN_IMAGE) readonly buffer Image
{
    float voxels[];
};
layout(std430, binding = LR_BIND_OUTPUT) writeonly buffer Lors
{
    float lors[];
};

STRIP_STORE(COLUMN_GROUP)
shared uint hits[(COLUMN_GROUP + 31) / 32]; // one bit for each candidate: 1 = it has a strip
shared vec2 shares[COLUMN_GROUP];
shared int rows[COLUMN_GROUP]; // first voxel of the column of each strip
shared ivec2 columns[COLUMN_GROUP];

// The axial cells of the thread's LOR, one of the primary and one of the secondary.
struct Cells {
    Axial a, b;
    ivec2 qs;
    vec2 low; // lower edges of the cells' faces, relative to the column's first point
};

Cells make_cells(Axial a, Axial b, ivec2 qs)
{
    return Cells(a, b, qs, vec2(cell_low(a, qs.x), cell_low(b, qs.y)));
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
    vec2 range = points_between(shares[n], cells.low, vec2(cells.a.face, cells.b.face));
    int row = rows[n];
    int k = int(range.x);
    float sum = 0.0;
    for (float at = range.x; at <= range.y; at += 1.0) {
        if (strip.pieces == 1 || farther_is_i(pair, column_across(columns[n]), k) == strip.i_is_primary) {
            float weight = axial_weight(strip, axial_from(cells.a, k), axial_from(cells.b, k), cells.qs, vec2(0.0));
            sum = fma(weight, voxel_value(row, k), sum);
        }
        k++;
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
    if (pr >= i.counts.x * j.counts.x || first_qs >= num_axial ||
        !is_taken(pair.i, pair.j, ivec2(pr / j.counts.x, pr % j.counts.x)))
        return;
    int qs = first_qs + thread;
    Tube tube = make_tube(pair.i, pair.j, ivec2(pr / j.counts.x, pr % j.counts.x));
    Axial on_i = make_axial(i, j.counts.y), on_j = make_axial(j, 1);
    ivec2 cells = ivec2(qs / j.counts.y, qs % j.counts.y);
    cells.x = i.centre.w > 0.0 ? cells.x : i.counts.y - 1 - cells.x;
    cells.y = j.centre.w > 0.0 ? cells.y : j.counts.y - 1 - cells.y;
    Cells forth = make_cells(on_i, on_j, cells);
    Cells back = make_cells(on_j, on_i, cells.yx);
    uint block = pair.first + uint(pr * num_axial);
    float sum = 0.0;
    for (int begin = 0; begin < tube.count; begin += COLUMN_GROUP) {
        barrier();
        if (thread < (COLUMN_GROUP + 31) / 32) hits[thread] = 0u;
        barrier();
        ivec2 column = begin + thread < tube.count ? tube_column(tube, begin + thread) : ivec2(-1);
        if (column.x >= 0) {
            Strip strip = tube_strip(pair, tube, column, begin + thread);
            if (strip.width > 0.0) {
                STRIP_PUT(thread, strip)
                shares[thread] = strip_shares(strip);
                rows[thread] = first_voxel(column);
                columns[thread] = column;
                atomicOr(hits[thread >> 5], 1u << (thread & 31));
            }
        }
        barrier();
        int words = (min(COLUMN_GROUP, tube.count - begin) + 31) >> 5; // a count that compilers do not know, so that
                                                                       // they do not unroll the loop
        for (int word = 0; qs < num_axial && word < words; word++) {
            for (uint bits = hits[word]; bits != 0u; bits &= bits - 1u) {
                int n = 32 * word + findLSB(bits);
                sum += strip_places[n].y % 2u != 0u ? column_sum(pair, n, forth) : column_sum(pair, n, back);
            }
        }
    }
    if (qs < num_axial) {
        Strip whole = no_strip; // the mask needs only `first` and `i_is_primary`
        whole.first = block;
        whole.i_is_primary = true;
        bool counts = true;
#ifdef MASKS
        counts = axial_allowed(pair, whole, cells);
#endif
        int points = num_samples.x * num_samples.y * num_samples.z;
        lors[block + uint(qs)] = counts ? sum / float(points) : 0.0;
    }
    check_loops();
}
