#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Computes the lines of events (docs/method/listmode.md, "Lines") in double, for the passes over
// slices.
//
// reads:     events; ends of lines; resolutions; places of a part; values
// writes:    lines (listmode/lines.glsl)
// shape:     one thread for each event
// invariant: a line has no slices if it is not selected or sees nothing
// variants: BINS=1
#include "listmode/events.glsl"

// The slices that a line may cross. The line has elements between `begin` and `end`. `place`, `begin` and `end` are
// positions along the line, in mm from its middle.
struct Way {
    double place, chord; // position in the middle of slice 0, and its increase per slice
    double begin, end;
    dvec2 position, step;
    int first, last; // `last` is one after the last slice
};

// Drops slices at both ends of the range if, along one axis, none of their voxels is within reach.
void narrow(inout Way way, double position, double step, int voxels, double reach)
{
    double low = -reach, high = double(voxels - 1) + reach;
    if (abs(step) < 1e-9lf) {
        way.last = position > low - 1.0lf && position < high + 1.0lf ? way.last : way.first;
        return;
    }
    double a = (low - position) / step, b = (high - position) / step;
    way.first = max(way.first, to_slice(floor(min(a, b))));
    way.last = min(way.last, to_slice(ceil(max(a, b)) + 1.0lf));
}

// Drops the first or the last slice of the range if its middle is not between `begin` and `end`.
void leave_middles(inout Way way)
{
    precise double first = way.place + double(way.first) * way.chord;
    way.first += first < way.begin ? 1 : 0;
    precise double last = way.place + double(way.last - 1) * way.chord;
    way.last -= last > way.end ? 1 : 0;
}

void find_slices(inout Way way, dvec3 direction)
{
    way.first = to_slice(floor((way.begin - way.place) / way.chord + 0.5lf));
    way.last = to_slice(floor((way.end - way.place) / way.chord + 0.5lf) + 1.0lf);
    if (events_first.w != 0) leave_middles(way);
    dvec2 beside = sqrt(max(1.0lf - direction.zy * direction.zy, dvec2(0.0lf)));
    dvec2 reach = axes.w != 0 ? dvec2(1.0lf) : origin_mm.w / direction.x * beside / edge_mm.yz;
    narrow(way, way.position.x, way.step.x, size.y, reach.x);
    narrow(way, way.position.y, way.step.y, size.z, reach.y);
}

// Length of the line in slice s between begin and end, in mm.
double chord_within(Way way, int s)
{
    double middle = way.place + double(s) * way.chord;
    double low = max(middle - 0.5lf * way.chord, way.begin);
    return max(min(middle + 0.5lf * way.chord, way.end) - low, 0.0lf);
}

// The middle of the line's part between `begin` and `end`, for a line with a single slice.
double only_middle(Way way)
{
    double middle = way.place + double(way.first) * way.chord;
    double low = max(middle - 0.5lf * way.chord, way.begin);
    return 0.5lf * (low + min(middle + 0.5lf * way.chord, way.end));
}

vec4 find_factors(Way way, double tof_mm, double sigma_mm)
{
    bool is_paper = events_first.w != 0, is_only = way.last - way.first == 1 && !is_paper;
    if (events_first.z == 0 && is_paper) return vec4(1.0);
    double middle = is_only ? only_middle(way) : way.place + double(way.first) * way.chord;
    return vec4(dvec4(middle - tof_mm, way.chord, chord_within(way, way.first), chord_within(way, way.last - 1)) /
                (events_first.z != 0 ? sigma_mm : 1.0lf));
}

Way way_of(dvec3 a, dvec3 b, inout double tof_mm, dvec2 sigma_bin, out dvec3 direction)
{
    Way way;
    precise dvec3 along = b - a, middle = 0.5lf * (a + b);
    precise double run = sqrt(along.x * along.x + along.y * along.y + along.z * along.z);
    bool is_turned = along.x < 0.0lf;
    direction = (is_turned ? -along : along) / run;
    tof_mm = is_turned ? -tof_mm : tof_mm;
    way.chord = edge_mm.x / direction.x;
    way.place = (origin_mm.x - middle.x) / direction.x;
    dvec2 per_voxel = direction.yz / edge_mm.yz;
    way.step = way.chord * per_voxel;
    way.position = (middle.yz - origin_mm.yz) / edge_mm.yz + way.place * per_voxel;
    way.begin = -0.5lf * run;
    way.end = 0.5lf * run;
    if (events_first.z != 0) {
        double reach = 3.0lf * sigma_bin.x + 0.5lf * sigma_bin.y;
        way.begin = max(way.begin, tof_mm - reach);
        way.end = min(way.end, tof_mm + reach);
    }
    find_slices(way, direction);
    return way;
}

void put(uint k, Event event, int place, float value)
{
    dvec3 a = along_axes(crystals[event.a].xyz), b = along_axes(crystals[event.b].xyz), direction;
    double tof_mm = double(event.tof_mm);
    dvec2 sigma_bin = events_first.z != 0 ? sigma_and_bin_of(event) : dvec2(1.0lf, 0.0lf);
    Way way = way_of(a, b, tof_mm, sigma_bin, direction);
    dvec2 at = way.position + double(way.first) * way.step;
    uint all = uint(kept.y), line = uint(kept.x) + k, count = uint(max(way.last - way.first, 0));
    if (count > 0u) {
        lines[line] = uvec4(to_fixed(at.x), to_fixed(at.y));
        lines[all + line] = uvec4(to_fixed(way.step.x), to_fixed(way.step.y));
        lines[3u * all + line] = floatBitsToUint(find_factors(way, tof_mm, sigma_bin.x));
#ifdef BINS
        lines[4u * all + line].x = floatBitsToUint(max(float(0.5lf * sigma_bin.y / sigma_bin.x), NARROWEST_HALF_BIN));
#endif
    }
    uint kind = uint(axes.x) + (events_first.z != 0 ? 4u : 0u);
    lines[2u * all + line] = uvec4(way.first, count, place, kept.z != 0 ? kind : floatBitsToUint(value));
}
