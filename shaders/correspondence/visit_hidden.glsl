// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The visible part of an overlap, for visit_exact.glsl (docs/method/correspondence.md, "Compute, point by point"). An
// overlap can be hidden by modules between the point and the primary, and by modules on the secondary's side that the
// lines hit first. On the primary's plane, a module hides the area inside five lines. Four of these lines are the edges
// of the module's rectangle. On the fifth line, the hiding module and the hidden module are equally far away. The
// visible rest is divided into pieces, one for each line. A piece is outside its line and inside all earlier lines. The
// next module divides each piece again. Pieces are visited one after another. The current piece is identified by 4 bits
// per module, so there is no list that could overflow.

#include "correspondence/triangle.glsl"

const int MOST_CORNERS = 8; // largest number of corners of a piece; larger pieces are cut in two
const int HIDER_WORDS = (LR_MAX_TARGETS + 31) / 32;
const int PATH_WORDS = (LR_MAX_TARGETS + 7) / 8;

// Sets of targets, with one bit per target. crystal_hiders: targets that hide a part of the thread's primary crystal,
// or of the area that is visible through it. hiders: targets that hide a part of the current overlap.
uint crystal_hiders[HIDER_WORDS];
uint hiders[HIDER_WORDS];

// The area that a module hides: where all five functions x + y a + z b are positive. (a, b) is a position relative to
// the crystal. Each component of x, y, z belongs to one edge of the rectangle; `nearer` has the three coefficients of
// the fifth line.
struct Shadow {
    vec4 x, y, z;
    vec3 nearer;
};

// The area that target k hides on target `index`. If target k is before the primary, the area does not depend on
// `index`.
Shadow make_shadow(View view, int k, int index)
{
    Sight sight = targets[k].sight;
    vec2 half_mm = 0.5 * vec2(targets[k].module.xy) * targets[k].cells.xy;
    vec4 shift = vec4(sight.along_u.ww, sight.along_v.ww) + vec4(half_mm.x, -half_mm.x, half_mm.y, -half_mm.y);
    vec2 here = vec2(along(sight.along_u, view.crystal_mm), along(sight.along_v, view.crystal_mm));
    float height = sight.denominator.w;
    vec4 sign = vec4(1.0, -1.0, 1.0, -1.0);
    Shadow shadow;
    shadow.x = sign * (shift * along(sight.denominator, view.crystal_mm) - height * here.xxyy);
    shadow.y = sign * (shift * sight.denominator.y - height * vec4(sight.along_u.yy, sight.along_v.yy));
    shadow.z = sign * (shift * sight.denominator.z - height * vec4(sight.along_u.zz, sight.along_v.zz));
    vec4 nearer = vec4(sight.denominator.x + height, sight.denominator.yz, 0.0);
    if (k >= first_secondary) {
        vec4 hidden = targets[index].sight.denominator;
        nearer = hidden.w * sight.denominator - height * hidden;
    }
    shadow.nearer = vec3(along(nearer, view.crystal_mm), nearer.yz);
    return shadow;
}

vec3 shadow_line(Shadow shadow, int line)
{
    return line < 4 ? vec3(shadow.x[line], shadow.y[line], shadow.z[line]) : shadow.nearer;
}

// The value of each edge's function up to which a point counts as on the edge. Such a point is at most 1e-6 of the
// face's diagonal away from the edge.
vec4 edges_noise(View view, Shadow shadow)
{
    return 1e-6 * length(view.face) * sqrt(shadow.y * shadow.y + shadow.z * shadow.z);
}

float nearer_noise(View view, Shadow shadow)
{
    return 1e-6 * length(view.face) * length(shadow.nearer.yz);
}

// True if a box lies completely outside one of the five lines.
bool box_apart(View view, Shadow shadow, vec2 middle, vec2 half_mm)
{
    vec4 reach =
        shadow.x + shadow.y * middle.x + shadow.z * middle.y + abs(shadow.y) * half_mm.x + abs(shadow.z) * half_mm.y;
    float nearer = shadow.nearer.x + dot(shadow.nearer.yz, middle) + dot(abs(shadow.nearer.yz), half_mm);
    return any(lessThanEqual(reach, edges_noise(view, shadow))) || nearer <= nearer_noise(view, shadow);
}

// True if the whole face of the crystal lies inside all five lines.
bool covers_face(View view, Shadow shadow)
{
    vec4 least = shadow.x - 0.5 * (abs(shadow.y) * view.face.x + abs(shadow.z) * view.face.y);
    float nearer = shadow.nearer.x - 0.5 * dot(abs(shadow.nearer.yz), view.face);
    return all(greaterThanEqual(least, -edges_noise(view, shadow))) && nearer >= -nearer_noise(view, shadow);
}

// Finds the crystal's hiders. Returns true if one of them is before the primary and covers the
// whole face.
bool find_hiders(View view)
{
    for (int word = 0; word < HIDER_WORDS; word++) crystal_hiders[word] = 0u;
    for (int k = 0; k < num_targets; k++) {
        bool before = k < first_secondary;
        if ((targets[k].draw & (LR_BEFORE_PRIMARY | LR_HIDES | LR_ONLY_STOPS)) == 0u) continue;
        Shadow shadow = make_shadow(view, k, k);
        if (!before)
            shadow.nearer = vec3(1.0, 0.0, 0.0); // the fifth line depends on the target that is hidden, so it
                                                 // is left out here
        if (!box_apart(view, shadow, vec2(0.0), 0.5 * view.face)) {
            if (before && covers_face(view, shadow)) return true;
            crystal_hiders[k >> 5] |= 1u << (k & 31);
        }
    }
    return false;
}

// Selects from the crystal's hiders the targets that may hide a part of an overlap with target `index`.
void pick_hiders(View view, convex_polygon overlap, int index)
{
    vec2 low = overlap.corners[0], high = low;
    for (int k = 1; k < overlap.count; k++) {
        low = min(low, overlap.corners[k]);
        high = max(high, overlap.corners[k]);
    }
    for (int word = 0; word < HIDER_WORDS; word++) {
        hiders[word] = 0u;
        for (uint left = crystal_hiders[word]; left != 0u; left &= left - 1u) {
            int k = 32 * word + findLSB(left);
            if (k != index && !box_apart(view, make_shadow(view, k, index), 0.5 * (low + high), 0.5 * (high - low)))
                hiders[word] |= left & -left;
        }
    }
}

// One of the two halves into which a diagonal divides a polygon.
convex_polygon half_polygon(convex_polygon polygon, int half_number)
{
    int last = polygon.count / 2;
    convex_polygon part;
    part.count = 0;
    for (int k = 0; k < polygon.count; k++)
        if (k == 0 || k == last || (k < last) == (half_number == 0)) part.corners[part.count++] = polygon.corners[k];
    return part;
}

// The path to a piece: a number of 4 bits for each hider. The number is 1 + 2 * line + half, or 0 for the hider's first
// piece.
struct Path {
    uint words[PATH_WORDS];
    int fork;  // depth of the last hider that has further pieces; -1 = none
    uint next; // the next piece of this hider
};

uint path_choice(Path path, int depth)
{
    return (path.words[depth >> 3] >> (4 * (depth & 7))) & 15u;
}

// Moves to the next piece of the hider at the fork, and to the first piece of all later hiders.
void path_turn(inout Path path)
{
    int word = path.fork >> 3, shift = 4 * (path.fork & 7);
    path.words[word] = (path.words[word] & ((1u << shift) - 1u)) | path.next << shift;
    for (int k = word + 1; k < PATH_WORDS; k++) path.words[k] = 0u;
}

// The set of the shadow's lines that have a part of the polygon on their outer side. apart: set to true if the whole
// polygon is on the outer side of one line.
uint cutting_lines(View view, Shadow shadow, convex_polygon polygon, out bool apart)
{
    vec4 low = vec4(1e30), high = vec4(-1e30);
    vec2 nearer = vec2(1e30, -1e30);
    for (int k = 0; k < polygon.count; k++) {
        vec2 at = polygon.corners[k];
        vec4 edges = shadow.x + shadow.y * at.x + shadow.z * at.y;
        float side = shadow.nearer.x + dot(shadow.nearer.yz, at);
        low = min(low, edges);
        high = max(high, edges);
        nearer = vec2(min(nearer.x, side), max(nearer.y, side));
    }
    vec4 noise = edges_noise(view, shadow);
    apart = any(lessThanEqual(high, noise)) || nearer.y <= nearer_noise(view, shadow);
    uvec4 bits = uvec4(lessThan(low, -noise)) * uvec4(1u, 2u, 4u, 8u);
    return bits.x + bits.y + bits.z + bits.w + (nearer.x < -nearer_noise(view, shadow) ? 16u : 0u);
}

// The piece to which the path leads, among the pieces that target k leaves visible. depth: number of the target's
// choice in the path. The result is the whole polygon if nothing is hidden, and an empty polygon if everything is
// hidden.
convex_polygon take_piece(View view, convex_polygon polygon, int k, int index, int depth, inout Path path)
{
    Shadow shadow = make_shadow(view, k, index);
    bool apart;
    uint cutting = cutting_lines(view, shadow, polygon, apart);
    if (apart) return polygon;
    if (cutting == 0u) {
        polygon.count = 0;
        return polygon;
    }
    uint choice = path_choice(path, depth);
    int last = choice == 0u ? findLSB(cutting) : int(choice - 1u) >> 1;
    for (uint left = cutting & ((1u << last) - 1u) | 1u << last; left != 0u; left &= left - 1u) {
        int line = findLSB(left);
        polygon = clip_by(polygon, (line == last ? -1.0 : 1.0) * shadow_line(shadow, line));
    }
    uint further = cutting & ~((2u << last) - 1u);
    int half_number = choice == 0u ? 0 : int(choice - 1u) & 1;
    bool in_two = polygon.count > MOST_CORNERS;
    if (in_two && half_number == 0) {
        path.fork = depth;
        path.next = uint(2 + 2 * last);
    } else if (further != 0u) {
        path.fork = depth;
        path.next = uint(1 + 2 * findLSB(further));
    }
    if (in_two) return half_polygon(polygon, half_number);
    return polygon;
}

// The piece of an overlap to which the path leads. Sets the path's fork to the last fork on the way.
convex_polygon follow_path(View view, convex_polygon piece, int index, inout Path path)
{
    int depth = 0;
    path.fork = -1;
    for (int word = 0; word < HIDER_WORDS; word++) {
        for (uint left = hiders[word]; left != 0u && piece.count > 2; left &= left - 1u) {
            piece = take_piece(view, piece, 32 * word + findLSB(left), index, depth, path);
            depth++;
        }
    }
    return piece;
}

struct Seen {
    float weight, area;
    vec2 moment; // area times centroid
};

// The part of an overlap with target `index` that the hiders leave visible.
Seen cut_hidden(View view, convex_polygon overlap, int index)
{
    Seen seen = Seen(0.0, 0.0, vec2(0.0));
    Path path;
    for (int word = 0; word < PATH_WORDS; word++) path.words[word] = 0u;
    pick_hiders(view, overlap, index);
    do {
        convex_polygon piece = follow_path(view, overlap, index, path);
        for (int k = 2; k < piece.count; k++) {
            vec2 a = piece.corners[0], b = piece.corners[k - 1], c = piece.corners[k];
            float twice = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x), area = 0.5 * twice;
            vec3 foot = vec3(view.offset + view.crystal_mm, view.height);
            if (twice > 0.0)
                seen.weight += triangle_angle(foot + vec3(a, 0.0), foot + vec3(b, 0.0), foot + vec3(c, 0.0), twice) /
                               6.283185307179586;
            seen.area += area;
            seen.moment += area / 3.0 * (a + b + c);
        }
        if (path.fork >= 0) path_turn(path);
    } while (path.fork >= 0);
    return seen;
}
