// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Exact mode of visit.glsl: the solid angle of the part of the primary face that is visible through a secondary face.
// The visible part is the intersection of the face with four half-planes, one for each edge of the secondary face. Let
// w be the sample point, y1 a position on the primary, h_j the point's height over the secondary's plane, and u_j, n_j
// the secondary's axis and normal. For the edge at U0, the half-plane is (along_u.w - U0) (n_j . (y1 - w)) - h_j (u_j .
// (y1 - w)) >= 0. The face is clipped by these four lines in coordinates relative to the crystal's centre.

#ifdef HIDING
const int MAX_CORNERS = 16; // at least 13: 8 before a module cuts, and one more for each of the module's 5 lines
#else
const int MAX_CORNERS = 12; // at least 8: 4 corners of the face, and one more for each edge of the secondary face
#endif
#include "kernels/polygon.glsl"

convex_polygon clip_by(convex_polygon polygon, vec3 line)
{
    return clip(polygon, line.x, line.y, line.z);
}

// The half-plane on the inner side of an edge of a rectangle on the target, in coordinates relative to `crystal`.
// rectangle: middle, and half of the size. edge: 0 and 1 lie along u, 2 and 3 along v.
vec3 half_plane(Sight sight, vec2 crystal, vec4 rectangle, int edge)
{
    bool is_u = edge < 2;
    vec4 row = is_u ? sight.along_u : sight.along_v;
    vec2 span = is_u ? rectangle.xz : rectangle.yw;
    float sign = (edge & 1) == 0 ? 1.0 : -1.0;
    float shift = row.w - (span.x - sign * span.y);
    float height = sight.denominator.w;
    float here = shift * along(sight.denominator, crystal) - height * along(row, crystal);
    return sign * vec3(here, shift * sight.denominator.yz - height * row.yz);
}

// The part of a polygon that is visible through a rectangle of the target. middle, half_mm: middle of the rectangle,
// and half of its size.
convex_polygon clip_window(convex_polygon polygon, Sight sight, vec2 crystal, vec2 middle, vec2 half_mm)
{
    for (int edge = 0; edge < 4; edge++)
        polygon = clip_by(polygon, half_plane(sight, crystal, vec4(middle, half_mm), edge));
    return polygon;
}

#ifdef HIDING
#include "correspondence/visit_hidden.glsl"
#endif

// The cells of the target through which the primary face may be visible. Result: first and last cell.
ivec4 cell_range(View view, Target target)
{
    vec2 low = vec2(1e30), high = vec2(-1e30);
    for (int k = 0; k < 4; k++) {
        vec2 at = view.crystal_mm + view.face * (vec2(k & 1, k >> 1) - 0.5);
        float t = sight_distance(target.sight, at);
        if (t < 0.0) return ivec4(ivec2(0), target.module.xy - 1);
        vec2 hit = sight_hit(target.sight, at, t);
        low = min(low, hit);
        high = max(high, hit);
    }
    vec2 cells = vec2(target.module.xy);
    vec2 first = floor(low / target.cells.xy + 0.5 * cells - 1e-3);
    vec2 last = floor(high / target.cells.xy + 0.5 * cells + 1e-3);
    return ivec4(clamp(first, vec2(0.0), cells), clamp(last, vec2(-1.0), cells - 1.0));
}

void visit_cell(View view, int index, ivec2 rs)
{
    Target target = targets[index];
    vec2 middle = (vec2(rs) - 0.5 * vec2(target.module.xy - 1)) * target.cells.xy;
    convex_polygon polygon = clip_window(rectangle(0.5 * view.face.x, 0.5 * view.face.y), target.sight, view.crystal_mm,
                                         middle, target.cells.zw);
    polygon_moments moments = moments_of(polygon);
    float smallest = 1e-6 * view.face.x * view.face.y; // smaller areas are rounding errors
    if (polygon.count < 3 || moments.area <= smallest || !target_allows(target, view, rs)) return;
    vec2 mean = vec2(moments.x, moments.y), foot = view.offset + view.crystal_mm;
#ifdef HIDING
    Seen seen = cut_hidden(view, polygon, index);
    float weight = seen.weight;
    mean = seen.area > smallest ? seen.moment / seen.area : mean;
#else
    float weight = polygon_angle(moments, foot.x, foot.y, view.height) / 6.283185307179586;
#endif
    if (weight > 0.0) {
        vec2 at = view.crystal_mm + mean;
        emit(target_lor(target, view, rs), weight * view_survival(view, at, sight_distance(target.sight, at)));
    }
}

void visit_crystal(View view)
{
#ifdef HIDING
    if (find_hiders(view)) return;
#endif
    for (int k = first_secondary; k < num_targets; k++) {
        if (targets[k].mask.x == LR_NONE) continue;
        ivec4 range = cell_range(view, targets[k]);
        for (int s = range.y; s <= range.w; s++)
            for (int r = range.x; r <= range.z; r++) visit_cell(view, k, ivec2(r, s));
    }
}
