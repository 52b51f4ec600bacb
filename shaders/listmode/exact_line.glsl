// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// A line through planes of sample points, as written by listmode/exact_prepare.comp, and the points
// around it that may have elements. A voxel has `slab.xyz` points along p, u and v. Parts 0 to 2
// are those of listmode/lines.glsl, with points instead of voxels. Variants: TOF, BINS, LEANING.
#include "listmode/line.glsl"

// A crystal's face. Offsets from the line are in spacings of the sample points along u and v; components along the
// face's axes are in mm.
struct Face {
    vec4 across_along; // components of an offset along the face's axes
    vec2 normal;
    vec3 lean; // cosines between its axes and the line, in the direction to the face; the normal's cosine has the
               // opposite sign
    vec2 half_mm;
    ivec2 pieces; // number of pieces, and half of a piece's edges
    vec2 piece_mm;
};

// The two faces as seen from a point. `far` is the face from whose plane the point is farther away, `near` the other
// one. For points near the middle of the line, the choice may be the wrong one.
struct Sight {
    Face near, far;
    vec4 turn; // cosines near.across far.across, near.normal far.across, near.across far.normal, and
               // near.along far.along
#ifdef LEANING
    vec4 lean_turn; // products near.across * far.along, near.along * far.across, near.normal *
                    // far.along, near.along * far.normal
#endif
    float length_mm;
};

struct Walk {
    ivec2 at;        // the current point
    float way_mm;    // distance to the plane, from the face at the lower end
    int plane, last; // counted from the line's first plane; `last` is exclusive
    ivec2 low, high; // points of the plane; the high ones are exclusive
    ivec2 whole;     // crossing in whole points, and the fraction of a point
    vec2 part;
    bool is_turned; // true if the face at the lower end is the far one
};

Face face_of(uint k, uint which)
{
    uint all = uint(size.w);
    vec4 second = uintBitsToFloat(lines[(which + 1u) * all + k]);
    vec4 third = uintBitsToFloat(lines[(which + 2u) * all + k]);
    ivec2 pieces = ivec2(int(third.w) & 255, int(third.w) >> 8);
    return Face(uintBitsToFloat(lines[which * all + k]), second.xy, vec3(second.zw, third.x), third.yz, pieces,
                third.yz / vec2(pieces));
}

Sight sight_of(Line line, uint k)
{
    uint all = uint(size.w);
    Sight sight;
    sight.near = face_of(k, 5u);
    sight.far = face_of(k, 8u);
    sight.turn = uintBitsToFloat(lines[11u * all + k]);
#ifdef LEANING
    sight.lean_turn = uintBitsToFloat(lines[12u * all + k]);
#endif
    sight.length_mm = line.factor.z;
    return sight;
}

void turn_round(inout Sight sight)
{
    Face near = sight.near;
    sight.near = sight.far;
    sight.far = near;
    sight.turn = sight.turn.xzyw;
#ifdef LEANING
    sight.lean_turn = sight.lean_turn.yxwz;
#endif
}

// A walk over planes from .. to - 1 of the image.
Walk walk_of(Line line, int from, int to)
{
    Walk walk;
    walk.plane = max(from - line.first, 0) - 1;
    walk.last = min(to - line.first, line.count);
    walk.at = walk.low = walk.high = ivec2(0);
    walk.is_turned = false;
    return walk;
}

void open_plane(inout Walk walk, inout Sight sight, Line line, vec4 reach)
{
    crossing_of(line, walk.plane, 0, walk.whole.x, walk.part.x);
    crossing_of(line, walk.plane, 1, walk.whole.y, walk.part.y);
    vec2 most = reach.xy + float(walk.plane) * reach.zw;
    walk.low = max(walk.whole + ivec2(ceil(walk.part - most)), ivec2(0));
    walk.high = min(walk.whole + ivec2(floor(walk.part + most)) + 1, size.yz * slab.yz);
    walk.high.y = walk.low.x < walk.high.x ? walk.high.y : walk.low.y;
    walk.at = walk.low;
    walk.way_mm = line.factor.x + float(walk.plane) * line.factor.y;
    if (!walk.is_turned && walk.way_mm > 0.5 * line.factor.z) {
        turn_round(sight);
        walk.is_turned = true;
    }
}

// Moves to the next `step` by `step` points of a plane; walk.at is the lowest of them. Returns false if there are none.
// The loop must have only one exit. With a second exit, compilers would let threads of a warp that leave early run
// alone up to the last plane, and the warp would execute each plane several times.
bool walk_on(inout Walk walk, inout Sight sight, Line line, vec4 reach, int step)
{
    walk.at.x += step;
    if (walk.at.x >= walk.high.x) walk.at = ivec2(walk.low.x, walk.at.y + step);
    while (walk.at.y >= walk.high.y && walk.plane < walk.last) {
        walk.plane++;
        if (walk.plane < walk.last) open_plane(walk, sight, line, reach);
    }
    return walk.plane < walk.last;
}

// Offset of a point of the current plane from the line's crossing, in points.
vec2 off_of(Walk walk, ivec2 at)
{
    return vec2(at - walk.whole) - walk.part;
}

// The voxel of a point of the current plane. tube.yzw is 1 / slab.xyz.
ivec3 voxel_of(Line line, Walk walk, ivec2 at)
{
    return ivec3((vec3(line.first + walk.plane, at) + 0.5) * tube.yzw);
}

#ifdef TOF
// A line's TOF weights. place: position of its first plane, its change from plane to plane, and half the extent of a
// voxel, all three in standard deviations from the centre; 1 / extent in 1/mm. gain: change of the position with a step
// along p, u, v. For middles of at most `whole`, the mean over the extent is the Gaussian's series around the middle,
// with Hermite polynomials as terms: 2^(-y log2(e) / 2) times the polynomial `even` of y, where y is the middle's
// square.
struct Time {
    vec4 place, even;
    vec3 gain;
    float whole;
#ifdef BINS
    float half_bin;
#endif
};

Time time_of(Line line, uint k)
{
    Time time;
    time.place = uintBitsToFloat(lines[13u * uint(size.w) + k]);
    vec4 gain = uintBitsToFloat(lines[14u * uint(size.w) + k]);
    time.gain = gain.xyz;
#ifdef BINS
    time.half_bin = gain.w;
#endif
    float width = time.place.z, q = width * width;
    vec3 of = vec3(q / 6.0, q * q / 120.0, q * q * q / 5040.0);
    time.whole = width < 0.25 ? 3.0 - width : -1.0;
#ifdef BINS // bins of up to about one standard deviation change the terms; the first omitted term is < 3e-6
    float p = gain.w * gain.w;
    of += vec3(p / 6.0, p * p / 120.0 + p * q / 36.0, p * p * p / 5040.0 + (p + q) * p * q / 720.0);
    time.whole = width < 0.25 && p + q < 0.3 ? 3.0 - width - gain.w : -1.0;
#endif
    time.even = float(0.79788456 / HELD) * width * time.place.w *
                vec4(1.0 - of.x + 3.0 * of.y - 15.0 * of.z, of.x - 6.0 * of.y + 45.0 * of.z, of.y - 15.0 * of.z, of.z);
    return time;
}

// The Gaussian's mean over the extent of a voxel, per mm. For a voxel that is long, or that lies across the end of the
// Gaussian.
float weight_of_part(float middle, Time time)
{
#ifdef BINS
    return held_of_bin(middle, time.place.z, time.half_bin) * time.place.w;
#else
    float low = max(middle - time.place.z, -3.0), high = min(middle + time.place.z, 3.0);
    float half_width = 0.5 * (high - low);
    if (half_width <= 0.0) return 0.0;
    float held =
        half_width < 0.5 ? normal_around(0.5 * (low + high), half_width) : normal_from_0(high) - normal_from_0(low);
    return held * time.place.w * float(1.0 / HELD);
#endif
}

float time_weight(Line line, Walk walk, ivec2 at, ivec3 voxel, Time time)
{
    vec3 point = vec3(line.first + walk.plane, at);
    vec3 to_middle = (vec3(voxel) + 0.5) * vec3(slab.xyz) - 0.5 - point;
    to_middle.yz += off_of(walk, at);
    float middle = time.place.x + float(walk.plane) * time.place.y + dot(to_middle, time.gain);
    float y = middle * middle;
    return abs(middle) <= time.whole
               ? exp2(y * -0.72134752) * (time.even.x + y * (time.even.y + y * (time.even.z + y * time.even.w)))
               : weight_of_part(middle, time);
}
#endif
