// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Pairs of modules that share an axial direction along a grid axis (docs/method/correspondence.md, "Columns").
//
// A column is a line of sample points along this axis. Across the axis, modules are segments. A primary crystal column
// is visible through a secondary one over an interval of the primary's transaxial coordinate, called a strip. The strip
// is the same for every point of the column and for all crystals along the axis, so it is computed once. Along the
// axis, an edge of a secondary cell at b is projected onto the primary at -b tau; both positions are relative to the
// point. tau is the distance to the primary divided by the distance to the secondary, and is linear in the transaxial
// coordinate.
//
// Lengths are in mm. Sampled mode needs RAYS defined before this file.
#include "correspondence/columns/scene.glsl"
#include "correspondence/mask.glsl"

// A module seen from a column.
struct Side {
    vec2 centre, rest; // centre: vector from the column to the module's centre; rest: its rounding error
    vec2 tangent, normal;
    float foot;   // transaxial coordinate of the module's centre, relative to the foot of the column on the module
    float height; // height of the column over the module; if it is positive, the column sees the face
    float pitch, face;
    int count;
    float face_along, reach_along; // axial extent of the face, and largest axial distance of the
                                   // module's ends from a point
};

float cross_of(vec2 a, vec2 b)
{
    return a.x * b.y - a.y * b.x;
}

// The cross product of two vectors. Each vector is the sum of floats and their rounding errors, so that no digits are
// lost if the two products nearly cancel.
float fine_cross(vec2 a, vec2 a_rest, vec2 b, vec2 b_rest)
{
    precise vec2 product = a * b.yx;
    precise vec2 lost = fma(a, b.yx, -product);
    precise float leading = product.x - product.y;
    precise float trailing = lost.x - lost.y + (cross_of(a, b_rest) + cross_of(a_rest, b));
    precise float sum = leading + trailing;
    return sum;
}

Side make_side(ColumnModule module, vec2 across, vec2 across_rest)
{
    Side side;
    precise vec2 leading = module.centre.xy - across;
    precise vec2 back = leading - module.centre.xy;
    precise vec2 lost = (module.centre.xy - (leading - back)) - (across + back);
    precise vec2 trailing = module.rest.xy - across_rest + lost;
    precise vec2 centre = leading + trailing;
    precise vec2 rest = trailing - (centre - leading);
    side.centre = centre;
    side.rest = rest;
    side.tangent = module.frame.xy;
    side.normal = module.frame.zw;
    side.foot = dot(side.tangent, side.centre);
    side.height = -dot(side.normal, side.centre);
    side.pitch = module.cells.x;
    side.face = module.cells.y;
    side.count = module.counts.x;
    side.face_along = module.cells.w;
    float middle = module.centre.z - 0.5 * (point_along(0).x + point_along(num_points.z - 1).x);
    side.reach_along =
        abs(middle) + 0.5 * (float(module.counts.y) * module.cells.z + float(num_points.z - 1) * spacing_mm.z);
    return side;
}

// The positions at which lines through the column hit the primary (coordinate u) and the secondary (coordinate w).
struct Crossing {
    Side primary, secondary;
    vec2 tau;          // tau at u = 0, and its slope
    vec2 on_second;    // w = -(x + y u) / tau(u) - secondary.foot
    vec2 meet, reach;  // u = (meet.x + meet.y w) / (reach.x + reach.y w)
    float reach_along; // reach_along of the secondary
    bool i_is_primary;
    bool visible;
};

Crossing make_crossing(Side i, Side j, bool i_is_primary)
{
    Crossing crossing;
    crossing.i_is_primary = i_is_primary;
    if (i_is_primary) {
        crossing.primary = i;
        crossing.secondary = j;
    } else {
        crossing.primary = j;
        crossing.secondary = i;
    }
    Side a = crossing.primary, b = crossing.secondary;
    crossing.visible = a.height > 0.0 && b.height > 0.0;
    float turned = dot(b.normal, a.tangent); // set to 0 below for parallel modules
    crossing.tau = vec2(dot(b.normal, a.centre), abs(turned) > 1e-7 ? turned : 0.0) / b.height;
    crossing.on_second = vec2(dot(b.tangent, a.centre), dot(b.tangent, a.tangent));
    crossing.reach = vec2(dot(a.normal, b.centre), dot(a.normal, b.tangent));
    float turn = cross_of(a.tangent, a.normal) > 0.0 ? -1.0 : 1.0;
    crossing.meet = turn * vec2(fine_cross(a.centre, a.rest, b.centre, b.rest), cross_of(a.centre, b.tangent));
    crossing.reach_along = b.reach_along;
    return crossing;
}

// The part of the primary from which lines reach the secondary between w0 and w1. Result: from, to. The part is empty
// (from > to) if the lines at w0 and w1 both come from behind the primary. If only one of these two lines does, the
// part reaches to +-1e9 on the side of this line, because a line to the last visible place of the secondary hits the
// primary's plane infinitely far away.
vec2 on_primary(Crossing crossing, float w0, float w1)
{
    vec2 w = vec2(w0, w1);
    vec2 reach = crossing.reach.x + crossing.reach.y * w;
    float least = 1e-6 * crossing.primary.height;
    if (max(reach.x, reach.y) <= least) return vec2(1.0, -1.0);
    float last = (crossing.meet.x * crossing.reach.y - crossing.meet.y * crossing.reach.x) * crossing.reach.y;
    float far = last > 0.0 ? 1e9 : -1e9;
    vec2 u = (crossing.meet.x + crossing.meet.y * w) / reach;
    u = vec2(reach.x > least ? u.x : far, reach.y > least ? u.y : far);
    return vec2(min(u.x, u.y), max(u.x, u.y));
}

// True if some part of the secondary is visible through the primary.
bool overlaps(Crossing crossing)
{
    float half_b = 0.5 * float(crossing.secondary.count) * crossing.secondary.pitch;
    float half_a = 0.5 * float(crossing.primary.count) * crossing.primary.pitch;
    vec2 u = on_primary(crossing, -half_b, half_b);
    return crossing.visible && u.x < half_a && u.y > -half_a && u.x < u.y;
}

float tau_at(Crossing crossing, float u)
{
    return crossing.tau.x + crossing.tau.y * u;
}

// The coordinate where the line through coordinate u of the primary hits the secondary. tau must be positive at u.
float on_secondary(Crossing crossing, float u)
{
    return -(crossing.on_second.x + crossing.on_second.y * u) / tau_at(crossing, u) - crossing.secondary.foot;
}

// True if higher columns p of the primary see lower columns r of the secondary.
bool runs_back(Crossing crossing)
{
    return crossing.on_second.y * crossing.tau.x > crossing.on_second.x * crossing.tau.y;
}

// The columns of secondary crystals that may be visible from the primary between u0 and u1, with u0 < u1. Result:
// first, last.
ivec2 columns_between(Crossing crossing, float u0, float u1)
{
    Side b = crossing.secondary;
    if (tau_at(crossing, u0) <= 1e-6 || tau_at(crossing, u1) <= 1e-6) return ivec2(0, b.count - 1);
    float w0 = on_secondary(crossing, u0), w1 = on_secondary(crossing, u1);
    float middle = 0.5 * float(b.count);
    float low = floor(min(w0, w1) / b.pitch + middle - 1e-3);
    float high = floor(max(w0, w1) / b.pitch + middle + 1e-3);
    return ivec2(clamp(low, 0.0, float(b.count)), clamp(high, -1.0, float(b.count - 1)));
}

float crystal_middle(Side side, int p)
{
    return (float(p) - 0.5 * float(side.count - 1)) * side.pitch;
}

// A strip: the part of a column of primary crystals that is visible through a column of secondary crystals. The struct
// has everything that does not depend on the axial position.
struct Strip {
    float width;   // transaxial width; 0 = no strip. Sampled mode: the part of the face's width that a line represents
    float tau;     // tau in the strip's middle
    float dtau;    // change of tau from one end of the strip to the other
    float squared; // squared transaxial distance from the point to the strip's middle
    float share;   // height * width / 2 pi
    vec3 bend;     // second-order terms 15 x^2 w^2 / 24, 3 w^2 / 24 and 3 x w. x: coordinate of the middle, relative to
                   // the column's foot; w: width
    uint first;    // index of the value of axial crystals 0 and 0, which are counted along the column
    bool i_is_primary;
    int pieces; // exact mode: number of pieces of equal width (count_pieces); sampled mode: 1 if the same module is the
                // primary for every point of the column, otherwise 0
};

// The largest number of pieces of a strip. Only columns of points in the secondary's plane would need more.
const float MOST_PIECES = 1024.0;

const Strip no_strip = Strip(0.0, 1.0, 0.0, 1.0, 0.0, vec3(0.0), 0u, false, 1);

// The number of pieces of a strip. Over the width of a piece, the line of an edge moves by less than a cell of the
// primary, and by less than the part of the primary that a cell of the secondary covers. A walk along the cells of both
// modules then misses no pair of cells. Lines that stay beyond the ends of the primary do not count. Nearly all lines
// of a point close to the secondary are such lines.
int count_pieces(Crossing crossing, Strip strip)
{
    float least = strip.tau - 0.5 * abs(strip.dtau), far = crossing.reach_along;
    if (least * far > crossing.primary.reach_along) far = crossing.primary.reach_along / least;
    float cell = min(crossing.primary.face_along, least * crossing.secondary.face_along);
    float pieces = cell > 0.0 ? ceil(abs(strip.dtau) * far / cell) : MOST_PIECES;
    return int(clamp(pieces, 1.0, MOST_PIECES));
}

Strip make_strip(Crossing crossing, float u0, float u1)
{
    float middle = 0.5 * (u0 + u1);
    float x = crossing.primary.foot + middle;
    Strip strip;
    strip.width = u1 - u0;
    strip.tau = tau_at(crossing, middle);
    strip.dtau = crossing.tau.y * strip.width;
    strip.squared = crossing.primary.height * crossing.primary.height + x * x;
    strip.share = crossing.primary.height * strip.width / 6.283185307179586;
    strip.bend = vec3(0.625 * x * x * strip.width, 0.125 * strip.width, 3.0 * x) * strip.width;
    strip.first = 0u;
    strip.i_is_primary = crossing.i_is_primary;
    strip.pieces = count_pieces(crossing, strip);
    return strip;
}

// Memory for the strips that a group keeps for all its threads.
#define STRIP_STORE(count)                                                                                             \
    shared vec4 strip_shapes[count], strip_bends[count];                                                               \
    shared uvec2 strip_places[count];

#define STRIP_PUT(n, strip)                                                                                            \
    strip_shapes[n] = vec4(strip.width, strip.tau, strip.dtau, strip.squared);                                         \
    strip_bends[n] = vec4(strip.bend, strip.share);                                                                    \
    strip_places[n] = uvec2(strip.first, (strip.i_is_primary ? 1u : 0u) + 2u * uint(strip.pieces));

#define STRIP_GET(n)                                                                                                   \
    Strip(strip_shapes[n].x, strip_shapes[n].y, strip_shapes[n].z, strip_shapes[n].w, strip_bends[n].w,                \
          strip_bends[n].xyz, strip_places[n].x, (strip_places[n].y & 1u) != 0u, int(strip_places[n].y >> 1))

#define strip_pieces(n) int(strip_places[n].y >> 1)

Strip strip_piece(Strip strip, int k)
{
    if (strip.pieces == 1) return strip;
    float part = 1.0 / float(strip.pieces), away = fma(float(k) + 0.5, part, -0.5);
    float whole_x = strip.bend.z / (3.0 * strip.width), x = fma(away, strip.width, whole_x);
    Strip piece = strip;
    piece.width *= part;
    piece.tau += away * strip.dtau;
    piece.dtau *= part;
    piece.squared += x * x - whole_x * whole_x;
    piece.share *= part;
    piece.bend = vec3(0.625 * x * x * piece.width, 0.125 * piece.width, 3.0 * x) * piece.width;
    return piece;
}

// Index of the first value of the block of transaxial crystals p of the primary and r of the secondary.
uint strip_block(ColumnPair pair, Crossing crossing, int p, int r)
{
    ColumnModule i = column_modules[pair.i], j = column_modules[pair.j];
    uint pr = crossing.i_is_primary ? uint(p * j.counts.x + r) : uint(r * j.counts.x + p);
    return pair.first + pr * uint(i.counts.y * j.counts.y);
}

// An overlap up to this length, mm, is a rounding error. The two ends of the overlap are positions of crystals, one of
// them multiplied by tau. Each end has an error of up to 2^-23 (|middle| + half_cell), and the two errors add up.
// Another 1e-6 of a face is added, because positions are stored relative to the middle of the stack.
float rounding(float middle, float half_cell)
{
    return fma(2.4e-7, abs(middle), 2.2e-6 * half_cell);
}

// Exact mode: the part of primary column p that is visible through secondary column r.
Strip exact_strip(Crossing crossing, int p, int r)
{
    Side a = crossing.primary, b = crossing.secondary;
    float u = crystal_middle(a, p), w = crystal_middle(b, r);
    vec2 seen = on_primary(crossing, w - 0.5 * b.face, w + 0.5 * b.face);
    float u0 = max(u - 0.5 * a.face, seen.x), u1 = min(u + 0.5 * a.face, seen.y);
    if (u1 - u0 <= rounding(a.foot + u, 0.5 * a.face)) return no_strip;
    return make_strip(crossing, u0, u1);
}

// Sampled mode: the strip of line `ray` of primary column p. r: receives the secondary column that the line hits, or
// -1.
Strip sampled_strip(Crossing crossing, int p, int ray, out int r)
{
    Side a = crossing.primary, b = crossing.secondary;
    float u = crystal_middle(a, p) + (float(ray) - 0.5 * float(RAYS - 1)) * a.face / float(RAYS);
    r = -1;
    if (tau_at(crossing, u) <= 0.0) return no_strip;
    float w = on_secondary(crossing, u);
    float place = w / b.pitch + 0.5 * float(b.count);
    int met = min(int(floor(place)), b.count - 1);
    if (place < 0.0 || place > float(b.count) || abs(w - crystal_middle(b, met)) > 0.5 * b.face) return no_strip;
    r = met;
    Strip strip = make_strip(crossing, u, u);
    strip.width = a.face / float(RAYS);
    strip.share = a.height * strip.width / 6.283185307179586;
    return strip;
}

// A module along the column, relative to one of the column's points.
struct Axial {
    int first;   // number of its first cell in the whole scanner
    float along; // distance from the column's origin to the point
    float base;  // distance from this origin to the first cell's lower edge
    float start; // distance from the point to this edge
    float pitch, face;
    int count;
    int step, origin; // the value of crystal k is at index origin + k step of its block
};

// The Axial of the same module, relative to point k of the column.
Axial axial_from(Axial axial, int k)
{
    axial.along = way_along(k);
    precise float start = axial.base - axial.along;
    axial.start = start;
    return axial;
}

// Makes the Axial of a module. stride: distance between the values of two neighbouring crystals, in the scanner's order
// of crystals.
Axial make_axial(ColumnModule module, int stride)
{
    Axial axial;
    axial.first = int(module.rest.w);
    axial.pitch = module.cells.z;
    axial.face = module.cells.w;
    axial.base = stack_middles[axial.first] - 0.5 * axial.pitch;
    axial.count = module.counts.y;
    axial.step = module.centre.w > 0.0 ? stride : -stride;
    axial.origin = module.centre.w > 0.0 ? 0 : (axial.count - 1) * stride;
    return axial_from(axial, 0);
}

float cell_middle(Axial axial, int k)
{
    return fma(float(k) + 0.5, axial.pitch, axial.start);
}

// Distance from the point to the middle of cell k. All passes must compute the same bits for a position and for its
// mirror image, because the length of an overlap can be far smaller than the positions that are subtracted.
float cell_place(Axial axial, int k)
{
    precise float place = stack_middles[axial.first + k] - axial.along;
    return place;
}

// Distance from the point to the lower edge of the cell's face.
float cell_low(Axial axial, int k)
{
    return cell_place(axial, k) - 0.5 * axial.face;
}

// Number of the cell at a given distance from the point.
int cell_at(Axial axial, float place)
{
    return int(floor((place - axial.start) / axial.pitch));
}

// Over the width of the strip, the projection of an edge b of the secondary onto the primary covers an interval. This
// function returns the lower end of the interval, and upper_end returns the upper end.
float lower_end(Strip strip, float b)
{
    return fma(-strip.tau, b, -0.5 * abs(strip.dtau * b));
}

float upper_end(Strip strip, float b)
{
    return fma(-strip.tau, b, 0.5 * abs(strip.dtau * b));
}

// Two cells are visited even if they miss each other by this fraction of a face. Rounding errors then never exclude a
// pair of cells with a positive weight.
const float SLACK = 1e-3;

// A walk over the pairs of cells that see each other, in order: q moves upwards; s moves downwards, because lines
// cross. `beyond` is set after the last pair.
struct Walk {
    int q, s;
    float q_low; // lower edge of cell q's face
    float s_low; // lower edge of cell s's face, on the secondary
    bool beyond;
};

bool walk_ends(Walk walk, Strip strip, Axial a, Axial b)
{
    return walk.q >= a.count || upper_end(strip, b.start) <= walk.q_low - SLACK * a.face;
}

Walk walk_begin(Strip strip, Axial a, Axial b)
{
    float end = b.start + float(b.count) * b.pitch;
    Walk walk;
    walk.q = max(cell_at(a, lower_end(strip, end) - SLACK * a.face), 0);
    walk.q_low = cell_low(a, walk.q);
    float tau = strip.tau + (walk.q_low > 0.0 ? 0.5 : -0.5) * abs(strip.dtau);
    walk.s = clamp(cell_at(b, -walk.q_low / tau + SLACK * b.face), 0, b.count - 1);
    walk.s_low = cell_low(b, walk.s);
    walk.beyond = walk_ends(walk, strip, a, b);
    return walk;
}

void walk_on(inout Walk walk, Strip strip, Axial a, Axial b)
{
    float next_top = walk.s_low - b.pitch + b.face;
    if (walk.s > 0 && lower_end(strip, next_top) < walk.q_low + (1.0 + SLACK) * a.face) {
        walk.s--;
        walk.s_low -= b.pitch;
        return;
    }
    walk.q++;
    walk.q_low += a.pitch;
    while (walk.s < b.count - 1 && upper_end(strip, walk.s_low + b.pitch) > walk.q_low - SLACK * a.face) {
        walk.s++;
        walk.s_low += b.pitch;
    }
    walk.beyond = walk_ends(walk, strip, a, b);
}

// The cells of the secondary through which the primary's face between low and high may be visible. Result: first, last.
ivec2 cells_seen(Strip strip, Axial b, float low, float high)
{
    float bend = 0.5 * abs(strip.dtau);
    vec2 scale = 1.0 / vec2(max(strip.tau - bend, 1e-6), strip.tau + bend);
    float from = min(-high * scale.x, -high * scale.y) - b.start;
    float to = max(-low * scale.x, -low * scale.y) - b.start;
    return ivec2(clamp(floor(from / b.pitch - SLACK), 0.0, float(b.count)),
                 clamp(floor(to / b.pitch + SLACK), -1.0, float(b.count - 1)));
}

// True if two crystals of the strip are in coincidence: crystal qs.x of the primary module and crystal qs.y of the
// secondary module. Crystals are counted along the column.
bool axial_allowed(ColumnPair pair, Strip strip, ivec2 qs)
{
    if (pair.mask == LR_NONE) return true;
    MaskEntry mask = mask_entries[pair.mask];
    ColumnModule i = column_modules[pair.i], j = column_modules[pair.j];
    ivec2 at = strip.i_is_primary ? qs : qs.yx; // axial crystals of i and of j
    int q = i.centre.w > 0.0 ? at.x : i.counts.y - 1 - at.x;
    int s = j.centre.w > 0.0 ? at.y : j.counts.y - 1 - at.y;
    uint block = (strip.first - pair.first) / uint(i.counts.y * j.counts.y);
    int p = int(block) / j.counts.x, r = int(block) % j.counts.x;
    bool turned = i.counts.z != 1; // true if the scanner numbers crystals along the column first
    return turned ? mask_bits(mask, ivec2(q, p), i.counts.yx, ivec2(s, r), j.counts.yx)
                  : mask_bits(mask, ivec2(p, q), i.counts.xy, ivec2(r, s), j.counts.xy);
}

// True if module i is the primary for point k of a column: its centre is not nearer to the point than the centre of j.
bool farther_is_i(ColumnPair pair, vec4 across, int k)
{
    vec2 along = point_along(k);
    dvec3 point = dvec3(double(across.x) + double(across.z), double(across.y) + double(across.w),
                        double(along.x) + double(along.y));
    double excess = pair.closer.w + dot(pair.closer.xyz, point);
    vec3 away = column_modules[pair.i].centre.xyz - vec3(point);
    return excess >= -1e-9 * double(dot(away, away));
}

#ifdef EXACT
#include "correspondence/columns/exact.glsl"
#else
#include "correspondence/columns/sampled.glsl"
#endif
