#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Back-projection of the pairs of modules that columns.glsl describes: each voxel gathers its
// elements times the values of their LORs.
//
// reads:     column modules, pairs and points, masks, LOR values in column order (not with ONES)
// adds to:   voxel sums [across 1][across 0][along]
// shape:     groups (voxels across 0, voxels across 1, stretches along the column)
// invariant: sums are added in a fixed order
// variants:  EXACT=1; RAYS=4; EXACT=1 ONES=1; EXACT=1 MASKS=1
#include "correspondence/columns/columns.glsl"
#include "correspondence/columns/strips.glsl"

layout(std430, binding = LR_BIND_COLUMN_IMAGE) buffer Sums
{
    float sums[];
};
#ifndef ONES
layout(std430, binding = LR_BIND_OUTPUT) readonly buffer Lors
{
    float lors[];
};
#endif

shared uint seen[COLUMN_GROUP / 32];
shared float partial[COLUMN_GROUP];

float strip_sum(ColumnPair pair, Strip strip, Axial a, Axial b)
{
    float sum = 0.0;
    Walk walk = walk_begin(strip, a, b);
    while (!walk.beyond) {
#ifdef MASKS
        if (axial_allowed(pair, strip, ivec2(walk.q, walk.s)))
#endif
        {
            float weight = axial_weight(strip, a, b, ivec2(walk.q, walk.s), vec2(walk.q_low, walk.s_low));
#ifdef ONES
            sum += weight;
#else
            int at = a.origin + walk.q * a.step + b.origin + walk.s * b.step;
            sum += weight * lors[strip.first + uint(at)];
#endif
        }
        walk_on(walk, strip, a, b);
    }
    return sum;
}

// Returns the sum of a pair for the thread's point. The crossing says which module is the primary. All arguments except
// `wanted` and k are the same for the whole group.
float pair_sum(ColumnPair pair, Crossing crossing, int k, bool wanted)
{
    float sum = 0.0;
    ColumnModule i = column_modules[pair.i], j = column_modules[pair.j];
    int own = min(k, num_points.z - 1);
    Axial on_i = axial_from(make_axial(i, j.counts.y), own);
    Axial on_j = axial_from(make_axial(j, 1), own);
    Axial a = on_i, b = on_j;
#ifndef EXACT
    if (!crossing.i_is_primary) {
        a = on_j;
        b = on_i;
    }
#endif
    int total = num_strips(crossing);
    for (int begin = 0; begin < total; begin += STRIPS) {
        int here = min(total - begin, STRIPS);
        gather_strips(pair, crossing, begin, here);
        for (int n = 0; wanted && n < here; n++)
            if (strip_shapes[n].x > 0.0) sum += strip_sum(pair, STRIP_GET(n), a, b);
    }
    return sum;
}

// Returns the sum of a pair for point k of the column. In sampled mode, either module or both can be the primary.
float visit_pair(ColumnPair pair, vec4 across, int k)
{
    Crossing crossing = see_pair(pair, across, true);
#ifdef EXACT
    // It does not matter which module is the primary, because the solid angle is the same.
    return pair_sum(pair, crossing, k, k < num_points.z);
#else
    bool i_first = farther_is_i(pair, across, 0);
    bool i_last = farther_is_i(pair, across, num_points.z - 1);
    bool i_here = farther_is_i(pair, across, min(k, num_points.z - 1));
    float sum = 0.0;
    if (i_first || i_last) sum += pair_sum(pair, crossing, k, k < num_points.z && i_here);
    if (!i_first || !i_last) sum += pair_sum(pair, see_pair(pair, across, false), k, k < num_points.z && !i_here);
    return sum;
#endif
}

// The sum of one column. In each round, the group first tests COLUMN_GROUP pairs, and then visits in order those that
// are visible.
float visit_column(vec4 across, int k)
{
    float sum = 0.0;
    for (int begin = 0; begin < count.x; begin += COLUMN_GROUP) {
        barrier();
        if (thread < COLUMN_GROUP / 32) seen[thread] = 0u;
        barrier();
        if (begin + thread < count.x && overlaps(see_pair(column_pairs[begin + thread], across, true)))
            atomicOr(seen[thread >> 5], 1u << (thread & 31));
        barrier();
        int words = (min(COLUMN_GROUP, count.x - begin) + 31) >> 5; // a count that compilers do not know, so that they
                                                                    // do not unroll the loop
        for (int word = 0; word < words; word++)
            for (uint bits = seen[word]; bits != 0u; bits &= bits - 1u)
                sum += visit_pair(column_pairs[begin + 32 * word + findLSB(bits)], across, k);
    }
    return sum;
}

void main()
{
    thread = int(gl_LocalInvocationIndex);
    ivec3 n = num_samples.xyz;
    int voxels_here = COLUMN_GROUP / n.z;
    int voxel = int(gl_WorkGroupID.z) * voxels_here + thread / n.z;
    int k = thread / n.z < voxels_here ? voxel * n.z + thread % n.z : num_points.z;
    float sum = 0.0;
    ivec2 group = ivec2(gl_WorkGroupID.x, first.y + int(gl_WorkGroupID.y));
    for (int c = first.z; c < count.y; c++) {
        ivec2 at = group * n.xy + ivec2(c % n.x, c / n.x);
        vec2 a = column_points[point_across(0, at.x)], b = column_points[point_across(1, at.y)];
        sum += visit_column(vec4(a.x, b.x, a.y, b.y), k);
    }
    partial[thread] = sum;
    barrier();
    int num_along = num_points.z / n.z;
    int mine = int(gl_WorkGroupID.z) * voxels_here + thread;
    if (thread < voxels_here && mine < num_along) {
        float whole = 0.0;
        for (int m = 0; m < n.z; m++) whole += partial[thread * n.z + m];
        int row = (group.y * int(gl_NumWorkGroups.x) + group.x) * num_along;
        sums[row + mine] += whole / float(n.x * n.y * n.z);
    }
    check_loops();
}
