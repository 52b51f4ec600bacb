// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The elements of a sample point and a pair of modules, for any orientation of the modules
// (docs/method/correspondence.md, "Tilted pairs"). The nearer module is the one whose plane is nearer to the point. One
// thread walks over the crystals of the nearer module. For each of these crystals, the thread walks over the crystals
// of the farther module that this crystal covers. The including file defines void emit(uint lor, float weight);
#include "correspondence/pairs/scene.glsl"
#ifdef LIMITED_LOOPS
#include "common/loops.glsl"
#endif
#ifdef MASKS
#include "correspondence/mask.glsl"
#endif

void emit(uint lor, float weight);

// The farther module's plane. Coordinates on the plane are in pitches of the module's crystals; the face of crystal 0
// is from 0 to `part`.
struct Plane {
    vec2 foot;        // foot of the perpendicular from the point to the plane
    vec2 pitch, face; // mm
    vec2 part, scale; // part: face / pitch; scale: pitch / face
    vec2 last;        // last crystal along u and v
    float squared;    // squared height of the point over the plane, mm^2
    float density;    // height * face area / 2 pi, where height is that of the point
    int width;        // number of crystals along u
};

// A walk over the crystals of the nearer module, in rows along u. A position on the nearer module is projected through
// the point onto the farther module's plane, where its coordinates are `cell` + here.xy / here.z. `here` is a linear
// function of the position. here.z is the height of the position over the point, along the normal of the farther plane.
struct Walk {
    vec3 along_u, along_v; // steps from one crystal to the next; xy for cell 0
    vec4 rest;             // rounding errors of the steps
    vec2 part;             // face / pitch
    ivec2 first, last;     // first and last crystal to visit, along u and v
    ivec2 at;
    vec3 here, row;      // first corner of crystal `at`, and of the first crystal of this row
    vec2 cell, row_cell; // whole numbers
    float height;        // here.z of crystal 0
    float least;         // positions with a smaller here.z are not visible on the plane
    bool half_done;      // true if the first triangle of a divided crystal has been visited
};

// A quadrilateral on the plane. All coordinates are relative to crystal Walk.cell. x, y: corners, in units of a face.
// rise, run: dy/dx and dx/dy of the edges. low, high: range of the crystals that the quadrilateral may cover.
struct Quad {
    vec4 x, y, rise, run;
    vec2 low, high;
};

const Quad no_quad = Quad(vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0), vec2(0.0), vec2(-1.0));

// Numbers of LORs in the window. The LOR of crystal c of the nearer module and crystal d of the
// farther module has the number first + c * near_step + d * far_step.
struct Numbers {
    uint first;
    uint near_step, far_step;
    int near_width; // number of the nearer module's crystals along u
};

// --- opening a pair ---

// Projects the farther module's rectangle through the point onto the nearer module. Returns the box around the
// projection, in crystals: first, last. The box is empty (first > last) if the rectangle is not visible.
ivec4 crystals_seen(PairModule near, PairModule far, dvec3 to_near, dvec3 to_far, float height)
{
    vec2 low = vec2(1e30), high = vec2(-1e30);
    vec3 n = vec3(near.normal.xyz), u = vec3(near.u.xyz), v = vec3(near.v.xyz);
    vec2 pitch = vec2(near.cells.xy);
    vec2 foot = -vec2(dot(near.u.xyz, to_near), dot(near.v.xyz, to_near));
    dvec2 half_far = 0.5lf * far.cells.xy * dvec2(far.crystals.xy);
    int behind = 0;
    for (int k = 0; k < 4; k++) {
        dvec2 at = half_far * dvec2(2 * (k & 1) - 1, 2 * (k >> 1) - 1);
        vec3 ray = vec3(to_far + at.x * far.u.xyz + at.y * far.v.xyz);
        float rise = dot(n, ray);
        if (rise <= 0.0) behind++;
        float way = height / max(rise, 1e-6 * length(ray));
        vec2 hit = (foot - way * vec2(dot(u, ray), dot(v, ray))) / pitch;
        low = min(low, hit);
        high = max(high, hit);
    }
    vec2 size = vec2(near.crystals.xy);
    if (behind > 0) {
        low = vec2(-1e30);
        high = vec2(behind < 4 ? 1e30 : -1e30);
    }
    vec2 slack = vec2(1e-3);
    return ivec4(clamp(floor(low - slack + 0.5 * size), vec2(0.0), size),
                 clamp(floor(high + slack + 0.5 * size), vec2(-1.0), size - 1.0));
}

vec2 clamp_cell(vec2 place, vec2 last)
{
    return clamp(floor(place), vec2(0.0), last);
}

// Converts a position on the nearer module to the value of Walk.here for cell 0. way: vector from the point to the
// position.
dvec3 on_plane(dvec3 way, PairModule far, dvec2 foot, double height)
{
    double rise = dot(far.normal.xyz, way);
    dvec2 across = dvec2(dot(far.u.xyz, way), dot(far.v.xyz, way));
    return dvec3(foot * rise - height / far.cells.xy * across, rise);
}

float farthest_squared(PairModule far, dvec3 to_far)
{
    vec2 half_far = 0.5 * vec2(far.cells.xy) * vec2(far.crystals.xy);
    vec2 across = abs(vec2(dot(far.u.xyz, to_far), dot(far.v.xyz, to_far))) + half_far;
    float height = float(dot(far.normal.xyz, to_far));
    return dot(across, across) + height * height;
}

// Prepares the walk over a pair. Returns false if the point does not see both modules of the pair.
bool open_pair(ModulePair pair, dvec3 point, out Walk walk, out Plane plane, out Numbers numbers)
{
    dvec3 to_i = pair_modules[pair.i].centre.xyz - point;
    dvec3 to_j = pair_modules[pair.j].centre.xyz - point;
    double over_i = -dot(pair_modules[pair.i].normal.xyz, to_i);
    double over_j = -dot(pair_modules[pair.j].normal.xyz, to_j);
    if (over_i <= 0.0lf || over_j <= 0.0lf) return false;
    bool near_is_i = over_i < over_j;
    PairModule near = pair_modules[near_is_i ? pair.i : pair.j];
    PairModule far = pair_modules[near_is_i ? pair.j : pair.i];
    dvec3 to_near = near_is_i ? to_i : to_j, to_far = near_is_i ? to_j : to_i;
    double height = near_is_i ? over_j : over_i, near_height = near_is_i ? over_i : over_j;
    ivec4 seen = crystals_seen(near, far, to_near, to_far, float(near_height));
    walk.first = seen.xy;
    walk.last = seen.zw;
    if (any(greaterThan(walk.first, walk.last))) return false;

    dvec2 foot = -dvec2(dot(far.u.xyz, to_far), dot(far.v.xyz, to_far)) + 0.5lf * far.cells.zw;
    foot = foot / far.cells.xy + 0.5lf * dvec2(far.crystals.xy - 1);
    plane.foot = vec2(foot);
    plane.pitch = vec2(far.cells.xy);
    plane.face = vec2(far.cells.zw);
    plane.part = plane.face / plane.pitch;
    plane.scale = plane.pitch / plane.face;
    plane.last = vec2(far.crystals.xy - 1);
    plane.squared = float(height * height);
    plane.density = float(height) * plane.face.x * plane.face.y / 6.283185307179586;
    plane.width = far.crystals.x;

    dvec3 u = near.cells.x * near.u.xyz, v = near.cells.y * near.v.xyz;
    dvec2 corner = 0.5lf * near.cells.xy * dvec2(near.crystals.xy - 1) + 0.5lf * near.cells.zw;
    dvec3 row =
        to_near - corner.x * near.u.xyz - corner.y * near.v.xyz + double(walk.first.x) * u + double(walk.first.y) * v;
    dvec3 along_u = on_plane(u, far, foot, height), along_v = on_plane(v, far, foot, height);
    dvec3 first = on_plane(row, far, foot, height);
    walk.least = 0.5 * float(height * near_height) * inversesqrt(farthest_squared(far, to_far));
    walk.along_u = vec3(along_u);
    walk.along_v = vec3(along_v);
    walk.rest = vec4(vec2(along_u.xy - dvec2(walk.along_u.xy)), vec2(along_v.xy - dvec2(walk.along_v.xy)));
    walk.part = vec2(near.cells.zw / near.cells.xy);
    walk.row_cell = vec2(0.0);
    if (float(first.z) > walk.least) walk.row_cell = clamp_cell(vec2(first.xy / first.z), plane.last);
    walk.row = vec3(first - dvec3(dvec2(walk.row_cell) * first.z, 0.0lf));
    walk.cell = walk.row_cell;
    walk.here = walk.row;
    walk.at = walk.first - ivec2(1, 0);
    walk.half_done = false;
    walk.height = float(first.z - double(walk.first.x) * along_u.z - double(walk.first.y) * along_v.z);

    uint num_far = uint(far.crystals.z), num_near = uint(near.crystals.z);
    numbers.first = pair.first;
    numbers.near_step = near_is_i ? num_far : 1u;
    numbers.far_step = near_is_i ? 1u : num_near;
    numbers.near_width = near.crystals.x;
    return true;
}

// --- the walk over the crystals of the nearer module ---

// Converts a step between neighbouring crystals, along u or v, to a step of Walk.here, whose coordinates are relative
// to `cell`.
vec3 step_for(vec3 along, vec2 rest, vec2 cell)
{
    return vec3(fma(-cell, along.zz, along.xy) + rest, along.z);
}

// Makes coordinates on the plane relative to the cell that contains the crystal's first corner.
void count_from_here(inout Walk walk, Plane plane)
{
#ifdef HORIZON
    if (walk.here.z < walk.least) return;
#endif
    vec2 shift = clamp_cell(walk.cell + walk.here.xy / walk.here.z, plane.last) - walk.cell;
    walk.here.xy = fma(-shift, walk.here.zz, walk.here.xy);
    walk.cell += shift;
}

// The height of the crystal, computed from its number. If it were computed from the previous height, rounding errors
// would add up. A position on the plane is computed from the product of the height and `cell`, which would enlarge
// these errors.
float height_at(Walk walk)
{
    return fma(float(walk.at.x), walk.along_u.z, fma(float(walk.at.y), walk.along_v.z, walk.height));
}

// Moves to the next crystal. Returns false if none is left.
bool walk_on(inout Walk walk, Plane plane)
{
    if (walk.at.x < walk.last.x) {
        if (walk.at.x >= walk.first.x) walk.here += step_for(walk.along_u, walk.rest.xy, walk.cell);
        walk.at.x++;
        walk.here.z = height_at(walk);
        count_from_here(walk, plane);
        return true;
    }
    if (walk.at.y >= walk.last.y) return false;
    walk.at = ivec2(walk.first.x, walk.at.y + 1);
    walk.here = walk.row + step_for(walk.along_v, walk.rest.zw, walk.row_cell);
    walk.cell = walk.row_cell;
    walk.here.z = height_at(walk);
    count_from_here(walk, plane);
    walk.row = walk.here;
    walk.row_cell = walk.cell;
    return true;
}

vec4 not_zero(vec4 number)
{
    return mix(number, vec4(1e-7), lessThan(abs(number), vec4(1e-7)));
}

Quad make_quad(vec3 a, vec3 b, vec3 c, vec3 d, vec2 cell, Plane plane)
{
    Quad quad;
    vec4 inverse = 1.0 / vec4(a.z, b.z, c.z, d.z);
    vec4 x = vec4(a.x, b.x, c.x, d.x) * inverse, y = vec4(a.y, b.y, c.y, d.y) * inverse;
    vec2 low = vec2(min(min(x.x, x.y), min(x.z, x.w)), min(min(y.x, y.y), min(y.z, y.w)));
    vec2 high = vec2(max(max(x.x, x.y), max(x.z, x.w)), max(max(y.x, y.y), max(y.z, y.w)));
    quad.low = max(floor(low - plane.part) + 1.0, -cell);
    quad.high = min(ceil(high) - 1.0, plane.last - cell);
    quad.x = x * plane.scale.x;
    quad.y = y * plane.scale.y;
    vec4 dx = quad.x.yzwx - quad.x, dy = quad.y.yzwx - quad.y;
    quad.rise = dy / not_zero(dx);
    quad.run = dx / not_zero(dy);
    if (quad.low.x > quad.high.x) quad.high.y = quad.low.y - 1.0;
    return quad;
}

#ifdef HORIZON
// The last visible position on the way from a visible position to a hidden one.
vec3 last_seen(vec3 from, vec3 to, float least)
{
    return mix(from, to, (from.z - least) / (from.z - to.z));
}

// The part of a triangle that is visible on the plane: where the height is at least walk.least.
Quad make_triangle(vec3 a, vec3 b, vec3 c, Walk walk, Plane plane)
{
    bvec3 seen = greaterThanEqual(vec3(a.z, b.z, c.z), vec3(walk.least));
    int count = int(seen.x) + int(seen.y) + int(seen.z);
    if (count == 0) return no_quad;
    vec3 p = a, q = b, r = c; // p, q, r: the corners, with hidden corners last
    if (count == 1 ? seen.y : count == 2 && !seen.x) {
        p = b;
        q = c;
        r = a;
    } else if (count == 1 ? seen.z : count == 2 && !seen.y) {
        p = c;
        q = a;
        r = b;
    }
    vec3 s = r;
    if (count < 3) {
        s = last_seen(p, r, walk.least);
        r = count == 2 ? last_seen(q, r, walk.least) : s;
        q = count == 2 ? q : last_seen(p, q, walk.least);
    }
    return make_quad(p, q, r, s, walk.cell, plane);
}
#endif

// Finds the part of the plane that the next crystal covers; returns false if there are no more crystals.
bool next_quad(inout Walk walk, Plane plane, out Quad quad)
{
    if (!walk.half_done && !walk_on(walk, plane)) return false;
    vec3 along_u = walk.part.x * step_for(walk.along_u, walk.rest.xy, walk.cell);
    vec3 along_v = walk.part.y * step_for(walk.along_v, walk.rest.zw, walk.cell);
    vec3 a = walk.here, b = a + along_u, c = b + along_v, d = a + along_v;
#ifdef HORIZON
    if (min(min(a.z, b.z), min(c.z, d.z)) < walk.least) {
        quad = walk.half_done ? make_triangle(a, c, d, walk, plane) : make_triangle(a, b, c, walk, plane);
        walk.half_done = !walk.half_done;
        return true;
    }
#endif
    quad = make_quad(a, b, c, d, walk.cell, plane);
    return true;
}

// --- overlaps ---

// The density of the solid angle over a crystal's face, relative to the density at the face's middle. The face's
// coordinates are 0 and 1 at its corners. The density is a polynomial of second order, with the terms 1, x, y, x^2, xy
// and y^2. Its integral along y has these terms, each multiplied by y. The members of the struct are the coefficients
// of the integral.
struct Density {
    float middle;
    vec3 x;     // coefficients of y, xy, x^2 y
    vec2 y;     // coefficients of y^2, x y^2
    float yy;   // coefficient of y^3
    vec3 whole; // the integral along y up to 1, and then along x: coefficients of x, x^2, x^3
};

// Expands the density of a face. at: vector from the point's foot to the face's middle, mm.
Density make_density(Plane plane, vec2 at, vec2 face)
{
    float inverse = inversesqrt(dot(at, at) + plane.squared);
    float squared = inverse * inverse;
    vec2 first = -3.0 * squared * at * face;
    vec2 second = fma(first, first * (5.0 / 6.0), -1.5 * squared * face * face);
    float mixed = (5.0 / 3.0) * first.x * first.y;
    Density density;
    density.middle = plane.density * squared * inverse;
    float quarters = 0.25 * (second.x + second.y + mixed);
    density.x = vec3(1.0 - 0.5 * (first.x + first.y) + quarters, first.x - 0.5 * mixed - second.x, second.x);
    density.y = vec2(0.5 * (first.y - second.y) - 0.25 * mixed, 0.5 * mixed);
    density.yy = second.y * (1.0 / 3.0);
    density.whole =
        vec3(density.x.x + density.y.x + density.yy, 0.5 * (density.x.y + density.y.y), second.x * (1.0 / 3.0));
    return density;
}

// The density's integral along y, from 0 to y.
vec4 below(Density density, vec4 x, vec4 y)
{
    vec4 along_x = fma(x, fma(x, vec4(density.x.z), vec4(density.x.y)), vec4(density.x.x));
    vec4 along_y = fma(y, vec4(density.yy), fma(x, vec4(density.y.y), vec4(density.y.x)));
    return y * fma(y, along_y, along_x);
}

// The density's integral along y from 0 to 1, and along x from 0 to x.
vec4 left_of(Density density, vec4 x)
{
    return x * fma(x, fma(x, vec4(density.whole.z), vec4(density.whole.y)), vec4(density.whole.x));
}

// The density's integral over the overlap of a quadrilateral with the unit square, relative to the density at the
// square's middle. The integral is computed edge by edge along the overlap's boundary. An edge is cut at the square's
// bounds along x and clamped to the square's bounds along y, which gives three pieces. Only the middle piece is
// slanted, and two Gauss points integrate a polynomial of third order exactly along it.
float integrate(Density density, vec4 x, vec4 y, vec4 rise, vec4 run)
{
    vec4 from = clamp(x, 0.0, 1.0), way = from - x;
    vec4 to = from.yzwx;
    vec4 y0 = fma(rise, way, y), y1 = fma(rise, way.yzwx, y.yzwx);
    vec4 low = clamp(y0, 0.0, 1.0), high = clamp(y1, 0.0, 1.0);
    vec4 begin = clamp(fma(low - y0, run, from), 0.0, 1.0);
    vec4 end = clamp(fma(high - y1, run, to), 0.0, 1.0);
    vec4 width = end - begin;
    vec4 dx = 0.28867513459481287 * width, dy = 0.28867513459481287 * (high - low);
    vec4 middle_x = 0.5 * (begin + end), middle_y = 0.5 * (low + high);
    vec4 slanted = below(density, middle_x - dx, middle_y - dy) + below(density, middle_x + dx, middle_y + dy);
    vec4 at_from = left_of(density, from);
    vec4 sum = 0.5 * width * slanted + low * (left_of(density, begin) - at_from) +
               high * (at_from.yzwx - left_of(density, end));
    return abs((sum.x + sum.y) + (sum.z + sum.w));
}

#ifdef NEAR
// The expansion of the density is accurate if a face's edge is at most LARGEST_PART times the distance of the face.
// Larger faces are divided into equal parts, up to MOST_PARTS along each axis.
const float LARGEST_PART = 0.03;
const float MOST_PARTS = 32.0;

float count_parts(Plane plane, vec2 at)
{
    vec2 nearest = max(abs(at) - 0.5 * plane.face, vec2(0.0));
    float way = sqrt(dot(nearest, nearest) + plane.squared);
    return clamp(ceil(max(plane.face.x, plane.face.y) / (LARGEST_PART * way)), 1.0, MOST_PARTS);
}
#endif

#ifdef MASKS
bool is_allowed(ModulePair pair, bool near_is_i, ivec2 near, ivec2 far)
{
    if (pair.mask == LR_NONE) return true;
    ivec2 i = pair_modules[pair.i].crystals.xy, j = pair_modules[pair.j].crystals.xy;
    return near_is_i ? mask_bits(mask_entries[pair.mask], near, i, far, j)
                     : mask_bits(mask_entries[pair.mask], far, i, near, j);
}
#endif

// The LOR number of the walk's crystal and a crystal of the farther module.
uint lor_of(Numbers numbers, Walk walk, Plane plane, vec2 cell)
{
    ivec2 far = ivec2(walk.cell + cell);
    return numbers.first + uint(walk.at.y * numbers.near_width + walk.at.x) * numbers.near_step +
           uint(far.y * plane.width + far.x) * numbers.far_step;
}

// Overlaps up to this fraction of a face are rounding errors.
const float NOTHING = 1e-6;

// Emits the elements of one pair. An element can be emitted as several terms.
void visit_pair(ModulePair pair, dvec3 point)
{
    Walk walk;
    Plane plane;
    Numbers numbers;
    if (!open_pair(pair, point, walk, plane, numbers)) return;
    Quad quad = no_quad;
    vec2 cell = vec2(0.0), offset = vec2(0.0);
    uint lor = 0u, row = 0u, row_step = numbers.far_step * uint(plane.width);
    bool done = false;
#ifdef NEAR
    // part: number of the current part of a crystal; parts: number of parts along an edge; sum: sum over the parts so
    // far
    float part = 0.0, parts = 1.0, sum = 0.0;
#endif
    while (!done) {
        if (cell.y > quad.high.y) {
            done = !next_quad(walk, plane, quad);
            cell = quad.low;
            offset = (walk.cell + 0.5 * plane.part - plane.foot) * plane.pitch;
            row = lor_of(numbers, walk, plane, cell);
            lor = row;
        }
        if (!done && cell.y <= quad.high.y) {
            vec2 shift = cell * plane.scale;
            vec2 at = fma(cell, plane.pitch, offset);
#ifdef NEAR
            parts = part == 0.0 ? count_parts(plane, at) : parts;
            vec2 which = vec2(0.0, floor((part + 0.5) / parts));
            which.x = part - which.y * parts;
            vec2 face = plane.face / parts;
            Density density = make_density(plane, at + (which + 0.5) * face - 0.5 * plane.face, face);
            float share = integrate(density, fma(quad.x - shift.x, vec4(parts), vec4(-which.x)),
                                    fma(quad.y - shift.y, vec4(parts), vec4(-which.y)), quad.rise, quad.run);
            float scale = density.middle / (parts * parts);
            part += 1.0;
            bool whole = part >= parts * parts;
            part = whole ? 0.0 : part;
#else
            Density density = make_density(plane, at, plane.face);
            float share = integrate(density, quad.x - shift.x, quad.y - shift.y, quad.rise, quad.run);
            float scale = density.middle;
            const bool whole = true;
#endif
#ifdef MASKS
            if (!is_allowed(pair, numbers.far_step == 1u, walk.at, ivec2(walk.cell + cell))) share = 0.0;
#endif
#ifdef NEAR
            sum += share > NOTHING ? share * scale : 0.0;
            if (whole && sum > 0.0) emit(lor, sum);
            sum = whole ? 0.0 : sum;
#else
            if (share > NOTHING) emit(lor, share * scale);
#endif
            if (whole) {
                cell.x += 1.0;
                lor += numbers.far_step;
            }
            if (cell.x > quad.high.x) {
                cell = vec2(quad.low.x, cell.y + 1.0);
                row += row_step;
                lor = row;
            }
        }
    }
#ifdef LIMITED_LOOPS
    if (were_loops_ended(list.w)) unfinished = 1u;
#endif
}
