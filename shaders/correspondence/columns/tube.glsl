// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The columns of points that a pair of crystal columns may see. Across the axis, they are in the convex hull of two
// segments. The hull is divided into slabs along the grid axis to which it is more nearly parallel. Needs
// correspondence/columns/columns.glsl.

struct Tube {
    uint i, j;     // modules
    ivec2 pr;      // their crystal columns
    int slab_axis; // 0 or 1; the other axis is called lateral
    int first_slab;
    int width;      // columns tested in each slab
    int count;      // number of candidates of the whole tube
    vec4 at, slope; // four lines: lateral coordinate in slab 0, and slope per slab, in points
    bool unbounded; // true if all columns of each slab are tested
};

// Candidates per column of points. In sampled mode, a column has one candidate for each line of either module's face.
#ifdef EXACT
const int TRIES = 1;
#else
const int TRIES = 2 * RAYS;
#endif

vec2 segment_middle(ColumnModule module, int k)
{
    float along = (float(k) - 0.5 * float(module.counts.x - 1)) * module.cells.x;
    return module.centre.xy + along * module.frame.xy;
}

// A transaxial position in units of the grid's points.
vec2 in_points(vec2 place)
{
    return (place - vec2(column_points[point_across(0, 0)].x, column_points[point_across(1, 0)].x)) / spacing_mm.xy;
}

void bound_tube(inout Tube tube, vec2 from[2], vec2 to[2])
{
    int s = tube.slab_axis, l = 1 - s;
    vec2 whole = 0.5 * (to[0] + to[1] - from[0] - from[1]);
    float low = min(min(from[0][s], from[1][s]), min(to[0][s], to[1][s]));
    float high = max(max(from[0][s], from[1][s]), max(to[0][s], to[1][s]));
    int lateral = num_points[l];
    int last = min(int(floor(high + 1e-2)), num_points[s] - 1);
    tube.first_slab = max(int(ceil(low - 1e-2)), 0);
    tube.unbounded = false;
    for (int k = 0; k < 4; k++) {
        vec2 a = from[k & 1], way = to[k >> 1] - a;
        tube.unbounded = tube.unbounded || way[s] * whole[s] <= 0.1 * whole[s] * whole[s];
        tube.slope[k] = way[l] / way[s];
        tube.at[k] = a[l] - a[s] * tube.slope[k];
    }
    vec4 first = tube.at + tube.slope * float(tube.first_slab), end = tube.at + tube.slope * float(last);
    float widest =
        max(max(max(first.x, first.y), max(first.z, first.w)) - min(min(first.x, first.y), min(first.z, first.w)),
            max(max(end.x, end.y), max(end.z, end.w)) - min(min(end.x, end.y), min(end.z, end.w)));
    tube.width = tube.unbounded ? lateral : int(min(widest + 2.1, float(lateral)));
    tube.count = max(last - tube.first_slab + 1, 0) * tube.width * TRIES;
}

Tube make_tube(uint module_i, uint module_j, ivec2 pr)
{
    ColumnModule i = column_modules[module_i], j = column_modules[module_j];
    vec2 on_i = segment_middle(i, pr.x), on_j = segment_middle(j, pr.y);
    vec2 half_i = 0.5 * i.cells.y * i.frame.xy, half_j = 0.5 * j.cells.y * j.frame.xy;
    Tube tube;
    tube.i = module_i;
    tube.j = module_j;
    tube.pr = pr;
    vec2 way = abs(in_points(on_j) - in_points(on_i));
    tube.slab_axis = way.x > way.y ? 0 : 1;
    bound_tube(tube, vec2[2](in_points(on_i - half_i), in_points(on_i + half_i)),
               vec2[2](in_points(on_j - half_j), in_points(on_j + half_j)));
    return tube;
}

// The column of points of a candidate; x = -1 if there is none.
ivec2 tube_column(Tube tube, int candidate)
{
    int place = candidate / TRIES;
    int slab = tube.first_slab + place / tube.width;
    int lateral = place % tube.width;
    if (!tube.unbounded) {
        vec4 at = tube.at + tube.slope * float(slab);
        lateral += max(int(ceil(min(min(at.x, at.y), min(at.z, at.w)) - 1e-2)), 0);
        if (float(lateral) > max(max(at.x, at.y), max(at.z, at.w)) + 1e-2) return ivec2(-1);
    }
    if (lateral < 0 || lateral >= num_points[1 - tube.slab_axis]) return ivec2(-1);
    return tube.slab_axis == 0 ? ivec2(slab, lateral) : ivec2(lateral, slab);
}

vec4 column_across(ivec2 column)
{
    vec2 a = column_points[point_across(0, column.x)], b = column_points[point_across(1, column.y)];
    return vec4(a.x, b.x, a.y, b.y);
}

Crossing tube_crossing(Tube tube, ivec2 column, bool i_is_primary)
{
    vec4 across = column_across(column);
    return make_crossing(make_side(column_modules[tube.i], across.xy, across.zw),
                         make_side(column_modules[tube.j], across.xy, across.zw), i_is_primary);
}

// The strip of the tube's crystal columns, seen from a column of points; of width 0 if there is no strip. In exact mode
// i is always the primary, because the solid angle does not depend on which module is the primary.
#ifdef EXACT
Strip tube_strip(Tube tube, ivec2 column)
{
    Crossing crossing = tube_crossing(tube, column, true);
    return crossing.visible ? exact_strip(crossing, tube.pr.x, tube.pr.y) : no_strip;
}
#else
Strip tube_strip(ColumnPair pair, Tube tube, ivec2 column, int candidate)
{
    bool i_is_primary = candidate % TRIES < RAYS;
    bool first = farther_is_i(pair, column_across(column), 0) == i_is_primary;
    bool last = farther_is_i(pair, column_across(column), num_points.z - 1) == i_is_primary;
    Crossing crossing = tube_crossing(tube, column, i_is_primary);
    if (!(first || last) || !crossing.visible) return no_strip;
    int met;
    Strip strip = sampled_strip(crossing, i_is_primary ? tube.pr.x : tube.pr.y, candidate % RAYS, met);
    if (met != (i_is_primary ? tube.pr.y : tube.pr.x)) return no_strip;
    strip.pieces = first && last ? 1 : 0;
    return strip;
}
#endif

// The relative position of the point on the two lines through the ends of the strip: 0 on the primary's face, 1 on the
// secondary's face.
vec2 strip_shares(Strip strip)
{
    float bend = 0.5 * abs(strip.dtau);
    vec2 tau = vec2(strip.tau - bend, strip.tau + bend);
    return tau / (1.0 + tau);
}

// The points of the column that two faces may see. Result: first, last. low: lower edges of the primary's and the
// secondary's face, relative to point 0; faces: lengths of the faces.
vec2 points_between(vec2 shares, vec2 low, vec2 faces)
{
    vec2 high = low + faces;
    vec2 from = fma(vec2(low.y - low.x), shares, vec2(low.x));
    vec2 to = fma(vec2(high.y - high.x), shares, vec2(high.x));
    float scale = 1.0 / spacing_mm.z;
    return vec2(max(ceil(fma(min(from.x, from.y), scale, -1e-3)), 0.0),
                min(fma(max(to.x, to.y), scale, 1e-3), float(num_points.z - 1)));
}

// The index of the first voxel of the column of points.
int first_voxel(ivec2 column)
{
    ivec2 voxel = column / num_samples.xy;
    return (voxel.y * (num_points.x / num_samples.x) + voxel.x) * (num_points.z / num_samples.z);
}
