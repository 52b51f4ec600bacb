// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The solid angle in which a point sees one face through another face, for any orientation of the two. The method is
// that of listmode/exact_sight.glsl, but the three functions depend on both x and y, so the far face is cut by four
// lines (Sutherland and Hodgman 1974).

const int MAX_CORNERS = 8; // 4, and one more for each cut
#include "common/polygon.glsl"

// A part of the far face.
struct Piece {
    vec2 middle, half_mm;
};

// Cuts a polygon by a line, in coordinates around the piece's middle. It does nothing if the line
// does not meet the piece.
void cut(inout Polygon polygon, Piece piece, vec3 line)
{
    float middle = line.x + dot(line.yz, piece.middle);
    float reach = dot(abs(line.yz), piece.half_mm);
    if (middle <= -reach)
        polygon.count = 0;
    else if (middle < reach)
        polygon = clip(polygon, vec3(middle, line.yz));
}

// Area times the density height / distance^3 at the centroid, with the terms of second order. foot:
// from the foot of the point to the origin of the corners' coordinates.
float polygon_angle(Polygon polygon, vec2 foot, float height)
{
    float area = 0.0;
    vec2 first = vec2(0.0);
    vec3 second = vec3(0.0);
    vec2 origin = polygon.corners[0];
    for (int k = 1; k + 1 < polygon.count; k++) {
        vec2 p = polygon.corners[k] - origin, q = polygon.corners[k + 1] - origin;
        float twice = p.x * q.y - p.y * q.x;
        area += 0.5 * twice;
        first += twice * (1.0 / 6.0) * (p + q);
        second.xy += twice * (1.0 / 12.0) * (p * p + p * q + q * q);
        second.z += twice * (1.0 / 24.0) * (2.0 * (p.x * p.y + q.x * q.y) + p.x * q.y + q.x * p.y);
    }
    if (area <= 0.0) return 0.0;
    vec2 mean = first / area, at = foot + origin + mean;
    second -= vec3(mean * first, mean.x * first.y);
    float inverse = 1.0 / (dot(at, at) + height * height);
    float bend = (7.5 * inverse * (at.x * at.x * second.x + 2.0 * at.x * at.y * second.z + at.y * at.y * second.y) -
                  1.5 * (second.x + second.y)) *
                 inverse;
    return height * inverse * sqrt(inverse) * max(area + bend, 0.0);
}

// Solid angle in sr of the far face's visible part. ways: distances along the line to the near face and to the far
// face.
float angle_of(Sight sight, vec2 off, vec2 ways)
{
    Face near = sight.near, far = sight.far;
    vec2 beside = vec2(dot(near.across_along.xy, off), dot(near.across_along.zw, off));
    float above = dot(near.normal, off);
    float near_height = ways.x * near.lean.z + above;
    float height = ways.y * far.lean.z + dot(far.normal, off);
    if (near_height <= 0.0 || height <= 0.0) return 0.0;
    vec3 through = vec3(ways.y * near.lean.z - above, sight.turn.y, sight.lean_turn.z);
    vec2 here = sight.length_mm * (near.lean.xy * above + near.lean.z * beside);
    vec2 off_way = beside - ways.x * near.lean.xy;
    vec3 across = vec3(here.x, through.yz * off_way.x - near_height * vec2(sight.turn.x, sight.lean_turn.x));
    vec3 along = vec3(here.y, through.yz * off_way.y - near_height * vec2(sight.lean_turn.y, sight.turn.w));
    vec2 foot = ways.y * far.lean.xy - vec2(dot(far.across_along.xy, off), dot(far.across_along.zw, off));
    Piece piece;
    piece.half_mm = far.piece_mm;
    float sum = 0.0;
    for (int k = 0; k < far.pieces.x * far.pieces.y; k++) {
        ivec2 at = ivec2(k % far.pieces.x, k / far.pieces.x);
        vec2 corner = piece.half_mm;
        piece.middle = vec2(2 * at + 1 - far.pieces) * piece.half_mm;
        Polygon polygon;
        polygon.count = 4;
        polygon.corners[0] = -corner;
        polygon.corners[1] = vec2(corner.x, -corner.y);
        polygon.corners[2] = corner;
        polygon.corners[3] = vec2(-corner.x, corner.y);
        for (int side = 0; side < 4; side++) { // one call in a loop, which compilers translate in a quarter of the time
            float edge = side < 2 ? near.half_mm.x : near.half_mm.y;
            vec3 ray = side < 2 ? across : along;
            cut(polygon, piece, edge * through + ((side & 1) == 0 ? -ray : ray));
        }
        if (polygon.count >= 3) sum += polygon_angle(polygon, foot + piece.middle, height);
    }
    return sum;
}
