// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The solid angle in which a point near a LOR's line sees one face (the far face) through the other face (the near
// face). The ray from the point to a position (x, y) in the far face's plane crosses the near face's plane. Here,
// height is that of the position over the near face's plane; across and along are the coordinates of the crossing on
// the near face, times height. The position is seen through the near face if
//     |across| <= half of the near face times height and |along| <= half of the near face times height.
// across, along and height are linear functions of x and y. They are computed from the point's offset from the line, so
// that no large numbers are subtracted.
#ifndef LR_KERNELS_FACES
#define LR_KERNELS_FACES
#include "kernels/polygon.glsl"
#include "kernels/strips.glsl"

// A crystal's face. Offsets of points from the line are along u and v; face coordinates are in mm.
struct angle_face {
    float across[2], along[2], normal[2]; // components, along u and v, of the face's axes; multiplied by a point's
                                          // offset, they give its coordinates
    float lean[3]; // cosines of the angles between the line and the face's axes; that of the normal has the opposite
                   // sign
    float half_mm[2];
    int pieces[2];     // numbers of pieces into which the face is divided, along its axes
    float piece_mm[2]; // half edges of a piece
};

// The two faces as a point sees them. The far face is the one that is farther, along the line, from the plane of
// points. Usually, but not always, the point's height over the far face's plane is also larger. The other members are
// the length of the line, and cosines of the angles between an axis of the near face and an axis of the far face. The
// last five cosines are for faces without a common axis.
struct angle_view {
    angle_face near_face, far_face;
    float length_mm, across_across, normal_across, across_normal;
    float along_along, across_along, along_across, normal_along, along_normal;
};

LR_KERNEL angle_view turned_round(angle_view view)
{
    angle_view turned = view;
    turned.near_face = view.far_face;
    turned.far_face = view.near_face;
    turned.normal_across = view.across_normal;
    turned.across_normal = view.normal_across;
    turned.across_along = view.along_across;
    turned.along_across = view.across_along;
    turned.normal_along = view.along_normal;
    turned.along_normal = view.normal_along;
    return turned;
}

// A point relative to a face: its sideways distances, and its height above the face's plane.
struct angle_place {
    float across, along, height;
};

// The place of a point relative to a face. off: offset of the point from the line. way_mm: distance along the line from
// the face to the point.
LR_KERNEL angle_place place_over(angle_face face, const float off[2], float way_mm)
{
    angle_place place = {face.across[0] * off[0] + face.across[1] * off[1],
                         face.along[0] * off[0] + face.along[1] * off[1],
                         face.normal[0] * off[0] + face.normal[1] * off[1] + way_mm * face.lean[2]};
    return place;
}

// --- two faces with the same axis `along`: the region of integration lies between two values of x and two lines in x
// ---

// A range of x.
struct angle_range {
    float from, to;
};

// The range of x in which both a + b x >= 0 and other_a + other_b x >= 0. If b is 0, the range is either everything or
// empty, because a tiny number is added to b. There are no branches, so that the code before and after can run at the
// same time.
LR_KERNEL angle_range cut_range(float a, float b, float other_a, float other_b)
{
    float per_x = b + 1e-30f, at = -a * per_number(per_x);
    float other_per_x = other_b + 1e-30f, other_at = -other_a * per_number(other_per_x);
    angle_range range = {fmaxf(per_x > 0.0f ? at : -1e30f, other_per_x > 0.0f ? other_at : -1e30f),
                         fminf(per_x > 0.0f ? 1e30f : at, other_per_x > 0.0f ? 1e30f : other_at)};
    return range;
}

// The visible part of the far face's plane, in the coordinates x and y of this plane. x is within `range`, and y is
// between line - apart and line + apart. Both line and apart are linear in x.
struct angle_strips {
    angle_range range;
    float line, line_per_x, apart, apart_per_x;
    float foot[2], height; // vector from the foot of the point to the face's middle, and height of the point
};

LR_KERNEL angle_strips strips_of(angle_view view, angle_place below, angle_place above, const float ways[2])
{
    angle_face of = view.near_face;
    float rise = view.normal_across;
    float normal = below.height - ways[0] * of.lean[2], through = ways[1] * of.lean[2] - normal;
    float u = view.length_mm * (of.lean[0] * normal + of.lean[2] * below.across);
    float v = view.length_mm * (of.lean[1] * normal + of.lean[2] * below.along);
    float u_per_x = rise * (below.across - ways[0] * of.lean[0]) - below.height * view.across_across;
    float v_per_x = rise * (below.along - ways[0] * of.lean[1]);
    float per_height = per_number(below.height);
    angle_strips strips;
    strips.range = cut_range(of.half_mm[0] * through - u, of.half_mm[0] * rise - u_per_x, of.half_mm[0] * through + u,
                             of.half_mm[0] * rise + u_per_x);
    strips.line = v * per_height;
    strips.line_per_x = v_per_x * per_height;
    strips.apart = of.half_mm[1] * through * per_height;
    strips.apart_per_x = of.half_mm[1] * rise * per_height;
    strips.foot[0] = ways[1] * view.far_face.lean[0] - above.across;
    strips.foot[1] = -ways[1] * of.lean[1] - below.along;
    strips.height = above.height;
    return strips;
}

// The visible solid angle of a piece of the far face. The piece has the middle (middle_x, middle_y) and the half edges
// edges[0] and edges[1].
LR_KERNEL float piece_angle(angle_strips strips, float middle_x, float middle_y, const float edges[2])
{
    float from = fmaxf(strips.range.from, middle_x - edges[0]), to = fminf(strips.range.to, middle_x + edges[0]);
    float x = 0.5f * (from + to), width = to - from;
    if (!(width > 0.0f)) return 0.0f;
    float centre = strips.line + x * strips.line_per_x - middle_y, wide = strips.apart + x * strips.apart_per_x;
    float steep = strips.line_per_x * (0.5f * width), more = strips.apart_per_x * (0.5f * width);
    clamped_line upper, lower;
    if (fabsf(steep) + fabsf(more) <= edges[1]) {
        upper = clamp_flat(centre + wide, steep + more, edges[1]);
        lower = clamp_flat(centre - wide, steep - more, edges[1]);
    } else {
        upper = clamp_steep(centre + wide, steep + more, edges[1]);
        lower = clamp_steep(centre - wide, steep - more, edges[1]);
    }
    float at_x = strips.foot[0] + x;
    angle_strip strip = {at_x, strips.foot[1] + middle_y, width, strips.height,
                         at_x * at_x + strips.height * strips.height};
    return upper.mean > lower.mean ? strip_angle(strip, upper, lower) : 0.0f;
}

// The solid angle of the far face's visible part, sr. ways: distances along the line to the near face and to the far
// face.
LR_KERNEL float upright_angle(angle_view view, const float off[2], const float ways[2])
{
    angle_place below = place_over(view.near_face, off, ways[0]), above = place_over(view.far_face, off, ways[1]);
    if (!(below.height > 0.0f && above.height > 0.0f)) return 0.0f;
    angle_strips strips = strips_of(view, below, above, ways);
    int across = view.far_face.pieces[0], along = view.far_face.pieces[1];
    float edges[2] = {view.far_face.piece_mm[0], view.far_face.piece_mm[1]}, sum = 0.0f;
    if ((across | along) == 1) return piece_angle(strips, 0.0f, 0.0f, edges);
    for (int k = 0; k < across * along; k++) {
        sum += piece_angle(strips, float(2 * (k % across) + 1 - across) * edges[0],
                           float(2 * (k / across) + 1 - along) * edges[1], edges);
    }
    return sum;
}

// --- points that differ only along the common axis of the faces ---

// True if points along v differ only along the faces' axis `along`, and if neither face is divided into pieces.
LR_KERNEL bool has_columns(angle_view view)
{
    angle_face a = view.near_face, b = view.far_face;
    return a.across[1] == 0.0f && a.normal[1] == 0.0f && b.across[1] == 0.0f && b.normal[1] == 0.0f &&
           a.along[0] == 0.0f && (a.pieces[0] | a.pieces[1] | b.pieces[0] | b.pieces[1]) == 1;
}

// True if both faces look small from every point whose distance to the farther face is at least half of the line's
// length. A face looks small if the ratio of its edge to the distance is at most w = 0.035. The two lines in y then
// rise by at most w times a face over the strip. Formulas for level lines then leave out terms below w^3 / 8.
LR_KERNEL bool are_small(angle_view view)
{
    float edge = fmaxf(fmaxf(view.near_face.half_mm[0], view.near_face.half_mm[1]),
                       fmaxf(view.far_face.half_mm[0], view.far_face.half_mm[1]));
    return 4.0f * edge <= 0.035f * view.length_mm;
}

// The visible part of one piece, for points that differ only along the faces' common axis. All these points have the
// same two limits of x. The two lines in y depend linearly on a point's offset from the line along this axis.
struct angle_column {
    float width, x, height, squares; // width <= 0: nothing is visible; squares: (x relative to the foot)^2 + height^2
    float wide, more;                // wide: half of the distance between the two lines in the strip's middle; more:
                                     // increase of `wide` to the end of the strip
    float centre, centre_per;        // centre: value halfway between the two lines, for an offset of 0; centre_per:
                                     // increase of `centre` per mm of offset
    float rise, rise_per;            // rise: increase of `centre` to the end of the strip, for an offset of 0;
                                     // rise_per: increase of `rise` per mm of offset
    float foot;                      // y of the foot for an offset of 0
};

// The column of points with the offset `off` along u, if has_columns is true. The formulas are those of strips_of,
// without the offset along the axis.
LR_KERNEL angle_column column_of(angle_view view, float off, const float ways[2])
{
    angle_face of = view.near_face;
    float rise = view.normal_across, normal = of.normal[0] * off, across = of.across[0] * off;
    float below = normal + ways[0] * of.lean[2];
    float above = view.far_face.normal[0] * off + ways[1] * view.far_face.lean[2];
    float through = ways[1] * of.lean[2] - normal;
    float u = view.length_mm * (of.lean[0] * normal + of.lean[2] * across);
    float u_per_x = rise * (across - ways[0] * of.lean[0]) - below * view.across_across;
    angle_range range = cut_range(of.half_mm[0] * through - u, of.half_mm[0] * rise - u_per_x,
                                  of.half_mm[0] * through + u, of.half_mm[0] * rise + u_per_x);
    float from = fmaxf(range.from, -view.far_face.half_mm[0]), to = fminf(range.to, view.far_face.half_mm[0]);
    float x = 0.5f * (from + to), per_height = per_number(below);
    float edge = of.half_mm[1] * per_height, sweep = rise * per_height;
    angle_column column;
    column.wide = edge * (through + x * rise);
    column.width = below > 0.0f && above > 0.0f && column.wide > 0.0f ? to - from : 0.0f;
    column.x = ways[1] * view.far_face.lean[0] - view.far_face.across[0] * off + x;
    column.height = above;
    column.squares = column.x * column.x + above * above;
    column.more = edge * rise * (0.5f * column.width);
    column.centre_per = view.length_mm * of.lean[2] * per_height + x * sweep;
    column.centre = of.lean[1] * (view.length_mm * normal * per_height - x * sweep * ways[0]);
    column.rise_per = sweep * (0.5f * column.width);
    column.rise = -column.rise_per * ways[0] * of.lean[1];
    column.foot = -ways[1] * of.lean[1];
    return column;
}

// True if, for the column's point at this offset along the axis, one of the two lines may cross both limits.
LR_KERNEL bool is_steep(angle_column column, float along, float limit)
{
    return fabsf(column.rise + along * column.rise_per) + fabsf(column.more) > limit;
}

LR_KERNEL angle_strip column_strip(angle_column column, float along)
{
    angle_strip strip = {column.x, column.foot - along, column.width, column.height, column.squares};
    return strip;
}

// The solid angle that the column's point at this offset along the axis sees. steep: the result of is_steep, or true.
LR_KERNEL float column_angle(angle_column column, float along, float limit, bool steep)
{
    float middle = column.centre + along * column.centre_per, rise = column.rise + along * column.rise_per;
    clamped_line upper, lower;
    if (steep) {
        upper = clamp_steep(middle + column.wide, rise + column.more, limit);
        lower = clamp_steep(middle - column.wide, rise - column.more, limit);
    } else {
        upper = clamp_flat(middle + column.wide, rise + column.more, limit);
        lower = clamp_flat(middle - column.wide, rise - column.more, limit);
    }
    return strip_angle(column_strip(column, along), upper, lower);
}

// Does the same as column_angle for small faces (are_small).
LR_KERNEL float level_column_angle(angle_column column, float along, float limit)
{
    float middle = column.centre + along * column.centre_per, rise = column.rise + along * column.rise_per;
    return level_angle(column_strip(column, along), clamp_level(middle + column.wide, rise + column.more, limit),
                       clamp_level(middle - column.wide, rise - column.more, limit));
}

// --- faces that lean: the far one is cut by four lines ---

// Keeps the part of a piece of the far face where a + b x + c y >= 0. The polygon's coordinates are relative to the
// middle (x, y) of the piece.
LR_KERNEL void cut_piece(LR_INOUT(convex_polygon) polygon, vec2 middle, const float edges[2], const float line[3])
{
    float here = line[0] + line[1] * middle.x + line[2] * middle.y;
    float reach = fabsf(line[1]) * edges[0] + fabsf(line[2]) * edges[1];
    if (here <= -reach)
        polygon.count = 0;
    else if (here < reach)
        polygon = clip(polygon, here, line[1], line[2]);
}

// The solid angle of the far face's visible part, sr, for any orientation of the faces.
LR_KERNEL float leaning_angle(angle_view view, const float off[2], const float ways[2])
{
    angle_place below = place_over(view.near_face, off, ways[0]), above = place_over(view.far_face, off, ways[1]);
    if (!(below.height > 0.0f && above.height > 0.0f)) return 0.0f;
    angle_face near_face = view.near_face, far_face = view.far_face;
    float normal = below.height - ways[0] * near_face.lean[2];
    float through[3] = {ways[1] * near_face.lean[2] - normal, view.normal_across, view.normal_along};
    float a = below.across - ways[0] * near_face.lean[0], b = below.along - ways[0] * near_face.lean[1];
    float across[3] = {view.length_mm * (near_face.lean[0] * normal + near_face.lean[2] * below.across),
                       through[1] * a - below.height * view.across_across,
                       through[2] * a - below.height * view.across_along};
    float along[3] = {view.length_mm * (near_face.lean[1] * normal + near_face.lean[2] * below.along),
                      through[1] * b - below.height * view.along_across,
                      through[2] * b - below.height * view.along_along};
    float foot_x = ways[1] * far_face.lean[0] - above.across, foot_y = ways[1] * far_face.lean[1] - above.along;
    float edges[2] = {far_face.piece_mm[0], far_face.piece_mm[1]}, sum = 0.0f;
    for (int k = 0; k < far_face.pieces[0] * far_face.pieces[1]; k++) {
        vec2 middle = {float(2 * (k % far_face.pieces[0]) + 1 - far_face.pieces[0]) * edges[0],
                       float(2 * (k / far_face.pieces[0]) + 1 - far_face.pieces[1]) * edges[1]};
        convex_polygon polygon = rectangle(edges[0], edges[1]);
        for (int side = 0; side < 4; side++) { // a loop with one call, because compilers need a quarter of the time for
                                               // it
            float sign = side % 2 == 0 ? -1.0f : 1.0f, edge = side < 2 ? near_face.half_mm[0] : near_face.half_mm[1];
            float line[3] = {edge * through[0] + sign * (side < 2 ? across[0] : along[0]),
                             edge * through[1] + sign * (side < 2 ? across[1] : along[1]),
                             edge * through[2] + sign * (side < 2 ? across[2] : along[2])};
            cut_piece(polygon, middle, edges, line);
        }
        if (polygon.count >= 3) {
            polygon_moments moments = moments_of(polygon);
            if (moments.area > 0.0f) sum += polygon_angle(moments, foot_x + middle.x, foot_y + middle.y, above.height);
        }
    }
    return sum;
}
#endif
