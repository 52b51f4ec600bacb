// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The exact elements of an event. The including file defines void take(ivec3 voxel, float element), which receives the
// part of a voxel's element that one sample point contributes. That file calls each_element(k) for line k. Only planes
// of sample points in the range PLANES count. PLANES is the window, unless the including file defines another range.
// Variants: TOF; LEANING, if no grid axis is an axis of all modules.
#include "listmode/exact_line.glsl"
#ifndef PLANES
#define PLANES window.xy
#endif

void take(ivec3 voxel, float element);

struct Exact {
    Line line;
    angle_view view;
    Walk walk;
    vec4 reach; // xy: largest distances in the first plane, along the two axes, from the line to a point with elements;
                // zw: increase of these distances from plane to plane
#ifdef TOF
    exact_time time;
#endif
};

Exact exact_of(uint k)
{
    Exact exact;
    exact.line = line_of(k);
    exact.walk = walk_of(exact.line, PLANES.x, PLANES.y);
    exact.view = view_of(exact.line, k);
    exact.reach = uintBitsToFloat(lines[4u * uint(size.w) + k]);
#ifdef TOF
    exact.time = time_of(exact.line, k);
#endif
    return exact;
}

// Distances along the line from the point to the near face and to the far face.
float[2] ways_of(Exact exact)
{
    float way = exact.walk.way_mm, rest = exact.line.factor.z - way;
    return float[2](exact.walk.is_turned ? rest : way, exact.walk.is_turned ? way : rest);
}

// Passes one point of the current plane to take(). angle: solid angle that the point sees.
void take_point(Exact exact, ivec2 at, float angle)
{
    float element = tube.x * angle;
    if (element > 0.0) {
        ivec3 voxel = voxel_of(exact.line, exact.walk, at);
#ifdef TOF
        element *= time_weight(exact.line, exact.walk, at, voxel, exact.time);
#endif
        take(voxel, element);
    }
}

#ifndef LEANING
// Visits 2 x 2 points at once. Most planes have one or two points along either axis. Similar lines have about equally
// many planes, so the threads of a group have about the same work.
void each_of_columns(Exact exact, bool has_small)
{
    while (walk_on(exact.walk, exact.view, exact.line, exact.reach, 2)) {
        float ways[2] = ways_of(exact), limit = exact.view.far_face.half_mm[1];
        ivec2 first = exact.walk.at, count = min(exact.walk.high - first, ivec2(2));
        for (int i = 0; i < count.x; i++) {
            angle_column column = column_of(exact.view, off_of(exact.walk, first + ivec2(i, 0)).x, ways);
            for (int j = 0; j < 2; j++) {
                ivec2 at = first + ivec2(i, j);
                float along = exact.view.near_face.along[1] * off_of(exact.walk, at).y;
                float angle = has_small ? level_column_angle(column, along, limit)
                                        : column_angle(column, along, limit, is_steep(column, along, limit));
                take_point(exact, at, j < count.y && column.width > 0.0 ? angle : 0.0);
            }
        }
    }
}
#endif

void each_element(uint k)
{
    if (line_of(k).count == 0) // lines without planes have no other data
        return;
    Exact exact = exact_of(k);
#ifndef LEANING
    if (has_columns(exact.view)) {
        if (are_small(exact.view))
            each_of_columns(exact, true);
        else
            each_of_columns(exact, false);
        return;
    }
#endif
    while (walk_on(exact.walk, exact.view, exact.line, exact.reach, 1)) {
        vec2 off_line = off_of(exact.walk, exact.walk.at);
        float off[2] = {off_line.x, off_line.y};
#ifdef LEANING
        take_point(exact, exact.walk.at, leaning_angle(exact.view, off, ways_of(exact)));
#else
        take_point(exact, exact.walk.at, upright_angle(exact.view, off, ways_of(exact)));
#endif
    }
}

// Index of a voxel in an image stored slice by slice.
int cell_of(ivec3 voxel)
{
    return (voxel.x * size.z + voxel.z) * size.y + voxel.y;
}
