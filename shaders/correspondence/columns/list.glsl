// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The elements of single LORs. LR_LIST_SHARE threads work on one LOR, and each of them visits every LR_LIST_SHARE-th
// column of the LOR's tube. The including file defines void take(int voxel, float weight). The weights of a voxel add
// up to the element times the number of points of a voxel.
#include "correspondence/columns/columns.glsl"
#include "correspondence/columns/tube.glsl"

struct Entry {
    uint pair;   // index in column_pairs
    uint number; // number of the LOR within its pair, in LOR order
    float value;
    uint unused;
};
layout(std430, binding = LR_BIND_COLUMN_LIST) buffer List
{
    Entry entries[];
};

void take(int voxel, float weight);

// Returns the index of the list entry that the thread works on. thread_of_entry: index of the thread among the threads
// of this entry.
int entry_at()
{
    int group = COLUMN_GROUP / LR_LIST_SHARE;
    return first.x + int(gl_WorkGroupID.x) * group + int(gl_LocalInvocationIndex) / LR_LIST_SHARE;
}

int thread_of_entry()
{
    return int(gl_LocalInvocationIndex) % LR_LIST_SHARE;
}

// The axial cells of the LOR, one of the primary and one of the secondary.
struct Cells {
    Axial a, b;
    ivec2 qs;
    vec2 middles; // middles of these cells, relative to the column's origin
    vec2 low;     // lower edges of the cells' faces, relative to the column's first point
};

Cells make_cells(Axial a, Axial b, ivec2 qs)
{
    vec2 middles = vec2(stack_middles[a.first + qs.x], stack_middles[b.first + qs.y]);
    return Cells(a, b, qs, middles, middles - a.along - 0.5 * vec2(a.face, b.face));
}

void visit_strip(ColumnPair pair, Strip strip, ivec2 column, Cells cells)
{
    vec2 faces = vec2(cells.a.face, cells.b.face);
    ivec2 range = ivec2(floor(points_between(strip_shares(strip), cells.low, faces)));
    int row = first_voxel(column);
    int voxel = range.x / num_samples.z;
    float sum = 0.0;
    for (int k = range.x; k <= range.y; k++) {
        int here = k / num_samples.z;
        if (here != voxel) {
            take(row + voxel, sum);
            voxel = here;
            sum = 0.0;
        }
#ifdef EXACT
        precise vec2 at = cells.middles - way_along(k);
        sum += whole_weight(strip, cells.a, cells.b, at);
#else
        if (strip.pieces == 1 || farther_is_i(pair, column_across(column), k) == strip.i_is_primary)
            sum += axial_weight(strip, axial_from(cells.a, k), axial_from(cells.b, k), cells.qs, vec2(0.0));
#endif
    }
    if (range.x <= range.y) take(row + voxel, sum);
}

#ifdef EXACT
void visit_column(ColumnPair pair, Tube tube, ivec2 column, ivec2 qs)
{
    Strip strip = tube_strip(tube, column);
    if (strip.width > 0.0) {
        Axial a = make_axial(column_modules[tube.i], 1), b = make_axial(column_modules[tube.j], 1);
        visit_strip(pair, strip, column, make_cells(a, b, pair.swapped != 0u ? qs.yx : qs));
    }
}
#else
// Visits the points of a column whose primary is module i (i_is_primary) or module j (otherwise). whole: true if these
// are all points of the column.
void visit_role(ColumnPair pair, Tube tube, ivec2 column, ivec2 qs, bool i_is_primary, bool whole)
{
    Crossing crossing = tube_crossing(tube, column, i_is_primary);
    if (!crossing.visible) return;
    Axial i = make_axial(column_modules[pair.i], 1), j = make_axial(column_modules[pair.j], 1);
    if (!i_is_primary) {
        Axial swapped = i;
        i = j;
        j = swapped;
    }
    ivec2 pr = i_is_primary ? tube.pr : tube.pr.yx;
    Cells cells = make_cells(i, j, i_is_primary ? qs : qs.yx);
    for (int ray = 0; ray < RAYS; ray++) {
        int met;
        Strip strip = sampled_strip(crossing, pr.x, ray, met);
        if (met == pr.y) {
            strip.pieces = whole ? 1 : 0;
            visit_strip(pair, strip, column, cells);
        }
    }
}

void visit_column(ColumnPair pair, Tube tube, ivec2 column, ivec2 qs)
{
    vec4 across = column_across(column);
    bool first_is_i = farther_is_i(pair, across, 0);
    bool last_is_i = farther_is_i(pair, across, num_points.z - 1);
    bool whole = first_is_i == last_is_i;
    for (int role = 0; role < 2; role++) {
        bool i_is_primary = role == 0;
        if (first_is_i == i_is_primary || last_is_i == i_is_primary)
            visit_role(pair, tube, column, qs, i_is_primary, whole);
    }
}
#endif

bool entry_counts(ColumnPair pair, int pr, ivec2 qs)
{
#ifdef MASKS
    Strip whole = no_strip; // the mask needs only `first` and `i_is_primary`
    whole.first = pair.first + uint(pr * column_modules[pair.i].counts.y * column_modules[pair.j].counts.y);
    whole.i_is_primary = true;
    return axial_allowed(pair, whole, qs);
#else
    return true;
#endif
}

// Visits the thread's columns of the entry's tube.
void visit_entry(Entry entry)
{
    ColumnPair pair = column_pairs[entry.pair];
    ColumnModule i = column_modules[pair.i], j = column_modules[pair.j];
    uint num_b = uint(j.counts.x * j.counts.y);
    ivec2 on_i = crystal_numbers(i, int(entry.number / num_b));
    ivec2 on_j = crystal_numbers(j, int(entry.number % num_b));
    ivec2 qs =
        ivec2(i.centre.w > 0.0 ? on_i.y : i.counts.y - 1 - on_i.y, j.centre.w > 0.0 ? on_j.y : j.counts.y - 1 - on_j.y);
    if (!entry_counts(pair, on_i.x * j.counts.x + on_j.x, qs)) return;
    Tube tube = pair.swapped != 0u ? make_tube(pair.j, pair.i, ivec2(on_j.x, on_i.x))
                                   : make_tube(pair.i, pair.j, ivec2(on_i.x, on_j.x));
    int places = tube.count / TRIES;
    for (int place = thread_of_entry(); place < places; place += LR_LIST_SHARE) {
        ivec2 column = tube_column(tube, place * TRIES);
        if (column.x >= 0) visit_column(pair, tube, column, qs);
    }
}
