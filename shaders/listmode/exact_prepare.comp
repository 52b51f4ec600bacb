#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Prepares an event for exact elements (docs/method/listmode.md, "Exact elements"), in double: its line through planes
// of sample points, the distance from the line up to which points may have elements, and its two faces. All stored
// numbers are relative to the line and therefore small, so single precision is enough for the other passes.
//
// reads:     events; ends of lines and their modules; resolutions; places of a part; values
// writes:    lines (listmode/exact_line.glsl)
// shape:     one thread for each event
// invariant: a line has no planes if it is not selected or sees nothing
// variants: BINS=1
#include "listmode/events.glsl"

struct Module {
    dvec4 across, along, normal; // axes of the faces; across.w, along.w: half of a face in mm; `along` is the grid axis
                                 // that all modules share, if there is one
};
layout(std430, binding = LR_BIND_LIST_MODULES) readonly buffer Modules
{
    Module modules[];
};

struct path_points {
    int points[3], samples[3];
    double first_mm[3], step_mm[3], per_step[3];
};
#include "kernels/exact_path.glsl"

path_points points_of_grid()
{
    path_points grid = {{size.x, size.y, size.z},
                        {samples.x, samples.y, samples.z},
                        {origin_mm.x, origin_mm.y, origin_mm.z},
                        {edge_mm.x, edge_mm.y, edge_mm.z},
                        {1.0lf / edge_mm.x, 1.0lf / edge_mm.y, 1.0lf / edge_mm.z}};
    return grid;
}

placed_face face_of(int crystal)
{
    dvec4 hit = crystals[crystal];
    Module module = modules[int(hit.w)];
    dvec3 centre = along_axes(hit.xyz), across = along_axes(module.across.xyz), along = along_axes(module.along.xyz);
    dvec3 normal = along_axes(module.normal.xyz);
    placed_face face = {int(hit.w),
                        {centre.x, centre.y, centre.z},
                        {across.x, across.y, across.z},
                        {along.x, along.y, along.z},
                        {normal.x, normal.y, normal.z},
                        {module.across.w, module.along.w}};
    return face;
}

// Writes the data of one face. sign: 1 if the line runs towards this face, -1 if it comes from this face.
void put_face(uint at, placed_face face, face_line line, double sign)
{
    uint all = uint(size.w);
    vec2 edge = vec2(edge_mm.yz), half_mm = vec2(face.half_mm[0], face.half_mm[1]);
    face_lean of = lean_of(face, line, sign);
    vec2 pieces = clamp(ceil(half_mm / (float(LR_EVENTS_EXACT_HALF * 0.5) * float(line.length_mm))), 1.0,
                        float(LR_EVENTS_EXACT_PIECES));
    lines[at] =
        floatBitsToUint(vec4(vec2(face.across[1], face.across[2]) * edge, vec2(face.along[1], face.along[2]) * edge));
    lines[at + all] = floatBitsToUint(vec4(vec2(face.normal[1], face.normal[2]) * edge, of.lean[0], of.lean[1]));
    lines[at + 2u * all] = floatBitsToUint(vec4(of.lean[2], half_mm, pieces.x + 256.0 * pieces.y));
}

void put_turn(uint at, placed_face low, placed_face high)
{
    lines[at] = floatBitsToUint(vec4(product_of(low.across, high.across), product_of(low.normal, high.across),
                                     product_of(low.across, high.normal), product_of(low.along, high.along)));
    lines[at + uint(size.w)] =
        floatBitsToUint(vec4(product_of(low.across, high.along), product_of(low.along, high.across),
                             product_of(low.normal, high.along), product_of(low.along, high.normal)));
}

// Writes positions along the line relative to the centre of the TOF, in standard deviations.
void put_time(uint at, path_time time, const double tof[3])
{
    lines[at] = floatBitsToUint(vec4(time.place, time.step, 0.5lf * time.extent / tof[1], 1.0lf / time.extent));
    lines[at + uint(size.w)] = floatBitsToUint(
        vec4(time.gain[0], time.gain[1], time.gain[2], max(float(0.5lf * tof[2] / tof[1]), NARROWEST_HALF_BIN)));
}

void put(uint k, Event event, int place, float value)
{
    placed_face low = face_of(event.a), high = face_of(event.b);
    bool is_turned = high.centre[0] < low.centre[0], has_tof = events_first.z != 0;
    if (is_turned) {
        placed_face other = low;
        low = high;
        high = other;
    }
    dvec2 sigma_bin = has_tof ? sigma_and_bin_of(event) : dvec2(0.0lf);
    double tof_mm = has_tof ? double(event.tof_mm) : 0.0lf;
    double tof[3] = {is_turned ? -tof_mm : tof_mm, sigma_bin.x, sigma_bin.y};
    path_points grid = points_of_grid();
    face_line line = line_between(low, high);
    path_planes planes = planes_of(low, high, line, tof, grid, origin_mm.w);
    uint all = uint(size.w), count = uint(max(planes.last - planes.first, 0));
    if (count > 0u) {
        double way_mm = way_to(low, line, grid, planes.first);
        lines[k] = uvec4(to_fixed(planes.at[0]), to_fixed(planes.at[1]));
        lines[all + k] = uvec4(to_fixed(planes.step[0]), to_fixed(planes.step[1]));
        lines[3u * all + k] = floatBitsToUint(vec4(way_mm, edge_mm.x * line.per_along, line.length_mm, 0.0));
        lines[4u * all + k] =
            floatBitsToUint(vec4(planes.reach[0], planes.reach[1], planes.widening[0], planes.widening[1]));
        put_face(5u * all + k, low, line, -1.0lf);
        put_face(8u * all + k, high, line, 1.0lf);
        put_turn(11u * all + k, low, high);
        if (has_tof) put_time(13u * all + k, time_along(line, way_mm, tof, grid), tof);
    }
    lines[2u * all + k] = uvec4(planes.first, count, place, floatBitsToUint(value));
}
