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
#include "common/columns.glsl"

layout(std430, binding = LR_BIND_COLUMN_IMAGE) buffer Sums {
    float sums[];
};
#ifndef ONES
layout(std430, binding = LR_BIND_OUTPUT) readonly buffer Lors {
    float lors[];
};
#endif

const int STRIPS = COLUMN_STRIPS;
STRIP_STORE(STRIPS)
shared uint seen[COLUMN_GROUP / 32];
shared float partial[COLUMN_GROUP];

int thread;

float strip_sum(ColumnPair pair, Strip strip, Axial a, Axial b)
{
    float sum = 0.0;
    Walk walk = walk_begin(strip, a, b);
    while (!walk.beyond) {
#ifdef MASKS
        if (axial_allowed(pair, strip, ivec2(walk.q, walk.s)))
#endif
        {
            float weight =
                axial_weight(strip, a, b, ivec2(walk.q, walk.s), vec2(walk.q_low, walk.s_low));
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

// The strips of crystal columns that the group holds at once; every one has its place, whatever
// thread finds it: strips are met in order, one after the other along both modules.
#ifdef EXACT
int num_strips(Crossing crossing)
{
    return crossing.primary.count + crossing.secondary.count - 1;
}

void fill_strips(ColumnPair pair, Crossing crossing, int begin)
{
    bool back = runs_back(crossing);
    for (int p = thread; p < crossing.primary.count; p += COLUMN_GROUP) {
        float u = crystal_middle(crossing.primary, p);
        float half_face = 0.5 * crossing.primary.face;
        ivec2 range = columns_between(crossing, u - half_face, u + half_face);
        for (int r = range.x; r <= range.y; r++) {
            int place = p + (back ? crossing.secondary.count - 1 - r : r) - begin;
            Strip strip = exact_strip(crossing, p, r);
            if (strip.width > 0.0 && place >= 0 && place < STRIPS) {
                strip.first = strip_block(pair, crossing, p, r);
                STRIP_PUT(place, strip)
            }
        }
    }
}
#else
int num_strips(Crossing crossing)
{
    return crossing.primary.count * RAYS;
}

void fill_strips(ColumnPair pair, Crossing crossing, int begin)
{
    int end = min(num_strips(crossing) - begin, STRIPS);
    for (int k = thread; k < end; k += COLUMN_GROUP) {
        int r;
        int p = (begin + k) / RAYS;
        Strip strip = sampled_strip(crossing, p, (begin + k) % RAYS, r);
        if (strip.width > 0.0) {
            strip.first = strip_block(pair, crossing, p, r);
            STRIP_PUT(k, strip)
        }
    }
}
#endif

// Adds what one pair in the given roles gives to the thread's point; `wanted` may differ between
// threads, everything else is the same for all of the group.
float pair_sum(ColumnPair pair, Crossing crossing, int k, bool wanted)
{
    float sum = 0.0;
    ColumnModule i = column_modules[pair.i], j = column_modules[pair.j];
    Axial on_i = axial_from(make_axial(i, j.counts.y), k), on_j = axial_from(make_axial(j, 1), k);
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
        barrier();
        for (int n = thread; n < here; n += COLUMN_GROUP) {
            strip_shapes[n].x = 0.0;
        }
        barrier();
        fill_strips(pair, crossing, begin);
        barrier();
        for (int n = 0; wanted && n < here; n++) {
            if (strip_shapes[n].x > 0.0) {
                sum += strip_sum(pair, STRIP_GET(n), a, b);
            }
        }
    }
    return sum;
}

Crossing see_pair(ColumnPair pair, vec4 across, bool i_is_primary)
{
    return make_crossing(make_side(column_modules[pair.i], across.xy, across.zw),
                         make_side(column_modules[pair.j], across.xy, across.zw), i_is_primary);
}

// Whether the secondary, as a whole, is seen through the primary.
bool overlaps(Crossing crossing)
{
    float half_b = 0.5 * float(crossing.secondary.count) * crossing.secondary.pitch;
    float half_a = 0.5 * float(crossing.primary.count) * crossing.primary.pitch;
    float u0 = on_primary(crossing, -half_b), u1 = on_primary(crossing, half_b);
    return crossing.visible && min(u0, u1) < half_a && max(u0, u1) > -half_a;
}

// What the pair gives to point k of the column, in the roles that the mode asks for.
float visit_pair(ColumnPair pair, vec4 across, int k)
{
    Crossing crossing = see_pair(pair, across, true);
#ifdef EXACT
    // The solid angle is the same in either role.
    return pair_sum(pair, crossing, k, k < num_points.z);
#else
    bool i_first = farther_is_i(pair, across, 0);
    bool i_last = farther_is_i(pair, across, num_points.z - 1);
    bool i_here = farther_is_i(pair, across, min(k, num_points.z - 1));
    float sum = 0.0;
    if (i_first || i_last) {
        sum += pair_sum(pair, crossing, k, k < num_points.z && i_here);
    }
    if (!i_first || !i_last) {
        sum += pair_sum(pair, see_pair(pair, across, false), k, k < num_points.z && !i_here);
    }
    return sum;
#endif
}

// One column: pairs are looked at COLUMN_GROUP at a time, and those seen are visited in order.
float visit_column(vec4 across, int k)
{
    float sum = 0.0;
    for (int begin = 0; begin < count.x; begin += COLUMN_GROUP) {
        barrier();
        if (thread < COLUMN_GROUP / 32) {
            seen[thread] = 0u;
        }
        barrier();
        if (begin + thread < count.x &&
            overlaps(see_pair(column_pairs[begin + thread], across, true))) {
            atomicOr(seen[thread >> 5], 1u << (thread & 31));
        }
        barrier();
        for (int word = 0; word < COLUMN_GROUP / 32; word++) {
            for (uint bits = seen[word]; bits != 0u; bits &= bits - 1u) {
                sum += visit_pair(column_pairs[begin + 32 * word + findLSB(bits)], across, k);
            }
        }
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
        for (int m = 0; m < n.z; m++) {
            whole += partial[thread * n.z + m];
        }
        int row = (group.y * int(gl_NumWorkGroups.x) + group.x) * num_along;
        sums[row + mine] += whole / float(n.x * n.y * n.z);
    }
}
