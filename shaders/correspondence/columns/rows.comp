#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Lists the elements of single points, for the pairs of modules that columns.glsl describes, in any order. Each point
// is treated as a column.
//
// reads: column modules, pairs and points, masks
// writes: the number of elements, and the elements that fit into the list: point, LOR, bits of the
//           weight
// shape: one group for each point
// variants: EXACT=1; EXACT=1 NEAR=1; EXACT=1 MASKS=1
#define POINT_LIST
#ifndef EXACT
#define EXACT
#endif
#include "correspondence/columns/columns.glsl"
#include "correspondence/columns/strips.glsl"

layout(std430, binding = LR_BIND_OUTPUT) buffer Elements
{
    uint num_elements;
    uint unused_[3];
    uvec4 elements[]; // point, LOR, bits of the weight, unused
};

shared uint seen[COLUMN_GROUP / 32];

// A pair of modules, with the axial positions of its primary and its secondary.
struct Pair {
    ColumnPair pair;
    ColumnModule i, j;
    Axial a, b;
    bool i_is_primary;
};

Pair get_pair(int k)
{
    Pair at;
    at.pair = column_pairs[k];
    at.i = column_modules[at.pair.i];
    at.j = column_modules[at.pair.j];
    at.i_is_primary = at.pair.swapped == 0u;
    Axial i = axial_from(make_axial(at.i, at.j.counts.y), 0);
    Axial j = axial_from(make_axial(at.j, 1), 0);
    at.a = i;
    at.b = j;
    if (!at.i_is_primary) {
        at.a = j;
        at.b = i;
    }
    return at;
}

// The number, in LOR order, of the LOR of axial crystals q and s of the strip.
uint file_number(Pair at, Strip strip, ivec2 qs)
{
    int place = at.a.origin + qs.x * at.a.step + at.b.origin + qs.y * at.b.step;
    int num_s = at.j.counts.y;
    int block = int(strip.first - at.pair.first) / (at.i.counts.y * num_s);
    int a = block / at.j.counts.x * at.i.counts.z + place / num_s * at.i.counts.w;
    int b = block % at.j.counts.x * at.j.counts.z + place % num_s * at.j.counts.w;
    return at.pair.first + uint(a * at.j.counts.x * num_s + b);
}

void emit(uint lor, float weight)
{
    uint place = atomicAdd(num_elements, 1u);
    if (place < uint(count.y)) elements[place] = uvec4(point_index, lor, floatBitsToUint(weight), 0u);
}

// Lists the elements of the primary's cell q with all cells of the secondary through which cell q may be visible.
void list_cell(Pair at, Strip strip, int q)
{
    float q_low = cell_low(at.a, q);
    ivec2 range = cells_seen(strip, at.b, q_low, q_low + at.a.face);
    for (int s = range.x; s <= range.y; s++) {
#ifdef MASKS
        if (!axial_allowed(at.pair, strip, ivec2(q, s))) continue;
#endif
        float weight = whole_weight(strip, at.a, at.b, vec2(cell_place(at.a, q), cell_place(at.b, s)));
        if (weight > 0.0) emit(file_number(at, strip, ivec2(q, s)), weight);
    }
}

vec4 point_across_columns()
{
    vec2 x = column_points[3 * point_index], y = column_points[3 * point_index + 1];
    return vec4(x.x, y.x, x.y, y.y);
}

// True if, along the axis, some part of the secondary is visible through the primary.
bool overlaps_along(Crossing crossing, Axial a, Axial b)
{
    float half_a = 0.5 * float(crossing.primary.count) * crossing.primary.pitch;
    vec2 tau = vec2(tau_at(crossing, -half_a), tau_at(crossing, half_a));
    vec2 lower = -b.start * tau, upper = lower - float(b.count) * b.pitch * tau;
    float slack = 0.01 * a.face;
    return max(max(lower.x, lower.y), max(upper.x, upper.y)) > a.start - slack &&
           min(min(lower.x, lower.y), min(upper.x, upper.y)) < a.start + float(a.count) * a.pitch + slack;
}

bool is_seen(int k)
{
    Pair at = get_pair(k);
    Crossing crossing = see_pair(at.pair, point_across_columns(), at.i_is_primary);
    return overlaps(crossing) && overlaps_along(crossing, at.a, at.b);
}

// Lists the elements of pair k. Each thread works on a strip and a cell of the primary at a time.
void visit_pair(int k)
{
    Pair at = get_pair(k);
    Crossing crossing = see_pair(at.pair, point_across_columns(), at.i_is_primary);
    int total = num_strips(crossing);
    for (int begin = 0; begin < total; begin += STRIPS) {
        int here = min(total - begin, STRIPS);
        gather_strips(at.pair, crossing, begin, here);
        for (int n = thread; n < here * at.a.count; n += COLUMN_GROUP) {
            Strip strip = STRIP_GET(n / at.a.count);
            if (strip.width > 0.0) list_cell(at, strip, n % at.a.count);
        }
    }
}

void main()
{
    thread = int(gl_LocalInvocationIndex);
    point_index = first.y + int(gl_WorkGroupID.x);
    for (int begin = first.x; begin < count.x; begin += COLUMN_GROUP) {
        barrier();
        if (thread < COLUMN_GROUP / 32) seen[thread] = 0u;
        barrier();
        if (begin + thread < count.x && is_seen(begin + thread)) atomicOr(seen[thread >> 5], 1u << (thread & 31));
        barrier();
        int words = (min(COLUMN_GROUP, count.x - begin) + 31) >> 5; // a count that compilers do not know, so that they
                                                                    // do not unroll the loop
        for (int word = 0; word < words; word++)
            for (uint bits = seen[word]; bits != 0u; bits &= bits - 1u) visit_pair(begin + 32 * word + findLSB(bits));
    }
    check_loops();
}
