// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The exact elements of an event, point by point, for the passes that go through them:
//     Exact exact = exact_of(k);
//     while (next(exact)) { exact.element, exact.voxel }
// Variants: TOF; LEANING, where modules share no axial direction.
#include "listmode/exact_line.glsl"
#ifdef LEANING
#include "listmode/exact_lean.glsl"
#else
#include "listmode/exact_sight.glsl"
#endif

struct Exact {
    Line line;
    Sight sight;
    Walk walk;
    vec4 reach; // where beside the line there may be points, in its first plane, and more from plane to plane
    vec4 time;
    vec3 gain;
    ivec3 voxel;   // of the point at hand
    float element; // its share of the voxel's
};

// Of line k, in the window, which is of planes of sample points.
Exact exact_of(uint k)
{
    Exact exact;
    exact.line = line_of(k);
    if (exact.line.count == 0) { // of which nothing else is known
        exact.walk.plane = exact.walk.last = 0;
        exact.walk.at = exact.walk.high = ivec2(0);
        return exact;
    }
    exact.walk = walk_of(exact.line, window.x, window.y);
    exact.sight = sight_of(exact.line, k);
    exact.reach = uintBitsToFloat(lines[4u * uint(size.w) + k]);
#ifdef TOF
    exact.time = uintBitsToFloat(lines[13u * uint(size.w) + k]);
    exact.gain = uintBitsToFloat(lines[14u * uint(size.w) + k]).xyz;
#endif
    return exact;
}

// The next point; false: there is none.
bool next(inout Exact exact)
{
    if (!walk_on(exact.walk, exact.sight, exact.line, exact.reach)) {
        return false;
    }
    float way = exact.walk.way_mm, rest = exact.line.factor.z - way;
    exact.voxel = voxel_of(exact.line, exact.walk);
    exact.element = tube.x * angle_of(exact.sight, exact.walk.off,
                                      exact.walk.is_turned ? vec2(rest, way) : vec2(way, rest));
#ifdef TOF
    if (exact.element > 0.0) {
        exact.element *= time_weight(exact.line, exact.walk, exact.voxel, exact.time, exact.gain);
    }
#endif
    return true;
}

// Where a voxel stands in slices.
int cell_of(ivec3 voxel)
{
    return (voxel.x * size.z + voxel.z) * size.y + voxel.y;
}
