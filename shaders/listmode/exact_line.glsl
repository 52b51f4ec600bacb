// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// A line through planes of sample points, as listmode/exact_prepare.comp writes it, and the points around the line that
// may have elements. A voxel has `slab.xyz` points along p, u and v. Parts 0 to 2 of a line are as in
// listmode/lines.glsl, with points instead of voxels. Variants: TOF, BINS, LEANING.
#include "listmode/line.glsl"

#define MAX_CORNERS 8 // four corners, and one more for each of four cuts
#include "kernels/faces.glsl"

struct Walk {
    ivec2 at;        // the current point
    float way_mm;    // distance along the line from the face at the lower end to the plane
    int plane, last; // numbers counted from the line's first plane; `last` is one after the last plane
    ivec2 low, high; // range of points of the plane; `high` is one after the last point
    ivec2 whole;     // whole: crossing in whole points; part: the fraction of a point
    vec2 part;
    bool is_turned; // true if the face at the lower end is the far face
};

angle_face face_of(uint k, uint which)
{
    uint all = uint(size.w);
    vec4 first = uintBitsToFloat(lines[which * all + k]);
    vec4 second = uintBitsToFloat(lines[(which + 1u) * all + k]);
    vec4 third = uintBitsToFloat(lines[(which + 2u) * all + k]);
    int pieces[2] = {int(third.w) & 255, int(third.w) >> 8};
    angle_face face = {{first.x, first.y},
                       {first.z, first.w},
                       {second.x, second.y},
                       {second.z, second.w, third.x},
                       {third.y, third.z},
                       {pieces[0], pieces[1]},
                       {third.y / float(pieces[0]), third.z / float(pieces[1])}};
    return face;
}

angle_view view_of(Line line, uint k)
{
    uint all = uint(size.w);
    angle_view view;
    view.near_face = face_of(k, 5u);
    view.far_face = face_of(k, 8u);
    view.length_mm = line.factor.z;
    vec4 turn = uintBitsToFloat(lines[11u * all + k]);
    view.across_across = turn.x;
    view.normal_across = turn.y;
    view.across_normal = turn.z;
#ifdef LEANING
    vec4 lean_turn = uintBitsToFloat(lines[12u * all + k]);
    view.along_along = turn.w;
    view.across_along = lean_turn.x;
    view.along_across = lean_turn.y;
    view.normal_along = lean_turn.z;
    view.along_normal = lean_turn.w;
#endif
    return view;
}

// A walk over the line's planes that have the numbers from .. to - 1 in the image.
Walk walk_of(Line line, int from, int to)
{
    Walk walk;
    walk.plane = max(from - line.first, 0) - 1;
    walk.last = min(to - line.first, line.count);
    walk.at = walk.low = walk.high = ivec2(0);
    walk.is_turned = false;
    return walk;
}

void open_plane(inout Walk walk, inout angle_view view, Line line, vec4 reach)
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
        view = turned_round(view);
        walk.is_turned = true;
    }
}

// Moves to the next `step` by `step` points of a plane, of which walk.at is the lowest point. Returns false if no
// points are left. The loop over planes must have only one exit. With a second exit, compilers would let threads that
// leave early continue alone up to the last plane, and a warp would execute each plane several times.
bool walk_on(inout Walk walk, inout angle_view view, Line line, vec4 reach, int step)
{
    walk.at.x += step;
    if (walk.at.x >= walk.high.x) walk.at = ivec2(walk.low.x, walk.at.y + step);
    while (walk.at.y >= walk.high.y && walk.plane < walk.last) {
        walk.plane++;
        if (walk.plane < walk.last) open_plane(walk, view, line, reach);
    }
    return walk.plane < walk.last;
}

// Distance of a point of the current plane from the line's crossing, in points.
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
#include "kernels/exact_time.glsl"

exact_time time_of(Line line, uint k)
{
    vec4 place = uintBitsToFloat(lines[13u * uint(size.w) + k]);
    vec4 gain = uintBitsToFloat(lines[14u * uint(size.w) + k]);
    exact_time time;
    time.place = place.x;
    time.step = place.y;
    time.half_extent = place.z;
    time.per_mm = place.w * float(1.0 / LR_TIMES_HELD);
    time.gain[0] = gain.x;
    time.gain[1] = gain.y;
    time.gain[2] = gain.z;
#ifdef BINS
    time.half_bin = gain.w;
#else
    time.half_bin = 0.0;
#endif
    return with_series(time);
}

float time_weight(Line line, Walk walk, ivec2 at, ivec3 voxel, exact_time time)
{
    vec3 point = vec3(line.first + walk.plane, at);
    vec3 to_middle = (vec3(voxel) + 0.5) * vec3(slab.xyz) - 0.5 - point;
    to_middle.yz += off_of(walk, at);
    float middle =
        time.place + float(walk.plane) * time.step + dot(to_middle, vec3(time.gain[0], time.gain[1], time.gain[2]));
    if (abs(middle) <= time.whole) return weight_of_whole(time, middle);
#ifdef BINS
    return float(LR_TIMES_HELD) * held_of_bin(middle, time.half_extent, time.half_bin) * time.per_mm;
#else
    return weight_of_part(time, middle);
#endif
}
#endif
