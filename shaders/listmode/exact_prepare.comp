#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Prepares an event for exact elements (docs/method/listmode.md, "Exact elements"), in double: its
// line through planes of sample points, the range around it that may have elements, and its two
// faces. All stored numbers are relative to the line and small, so single precision is enough for
// the other passes.
//
// reads:     events; ends of lines and their modules; resolutions; places of a part; values
// writes:    lines (listmode/exact_line.glsl)
// shape:     one thread for each event
// invariant: a line has no planes if it is not selected or sees nothing
// variants: BINS=1
#include "listmode/events.glsl"

struct Module {
    dvec4 across, along, normal; // axes of the faces; across.w, along.w: half of a face in mm; if modules share an
                                 // axial direction, `along` has it
};
layout(std430, binding = LR_BIND_LIST_MODULES) readonly buffer Modules
{
    Module modules[];
};

// A face; vectors are in the order p, u, v.
struct Face {
    dvec3 centre, across, along, normal;
    dvec2 half_mm;
};

Face face_of(int crystal)
{
    dvec4 hit = crystals[crystal];
    Module module = modules[int(hit.w)];
    return Face(along_axes(hit.xyz), along_axes(module.across.xyz), along_axes(module.along.xyz),
                along_axes(module.normal.xyz), dvec2(module.across.w, module.along.w));
}

// Extent of a face along p, and extents along u and v of its projection, along the line, onto a plane across p.
dvec3 reach_of(Face face, dvec2 slope)
{
    dvec3 a = face.half_mm.x * face.across, b = face.half_mm.y * face.along;
    dvec2 beside = abs(a.yz - slope * a.x) + abs(b.yz - slope * b.x);
    return dvec3(abs(a.x) + abs(b.x), beside);
}

// The planes that the line meets, the range around it that may have elements, and its crossings.
struct Way {
    int first, last;       // `last` is the end, exclusive
    dvec2 at, step;        // crossing of plane 0, in points, and its change from plane to plane
    dvec2 reach, widening; // reach around the crossing, and its growth, in points
};

// Leaves out planes at both ends of the range in which no point along one axis is within reach.
void narrow(inout Way way, double at, double step, int points, double reach)
{
    double low = -reach, high = double(points - 1) + reach;
    if (abs(step) < 1e-9lf) {
        way.last = at > low - 1.0lf && at < high + 1.0lf ? way.last : way.first;
        return;
    }
    double a = (low - at) / step, b = (high - at) / step;
    way.first = max(way.first, to_slice(floor(min(a, b))));
    way.last = min(way.last, to_slice(ceil(max(a, b)) + 1.0lf));
}

Way way_of(Face low, Face high, dvec3 direction, double tof_mm, dvec2 sigma_bin)
{
    Way way;
    dvec2 slope = direction.yz / direction.x;
    dvec3 of_low = reach_of(low, slope), of_high = reach_of(high, slope);
    dvec2 range = dvec2(min(low.centre.x - of_low.x, high.centre.x - of_high.x),
                        max(low.centre.x + of_low.x, high.centre.x + of_high.x));
    if (sigma_bin.x > 0.0lf) {
        double centre = 0.5lf * (low.centre.x + high.centre.x) + tof_mm * direction.x;
        double most = (3.0lf * sigma_bin.x + 0.5lf * sigma_bin.y) * direction.x + origin_mm.w;
        range = dvec2(max(range.x, centre - most), min(range.y, centre + most));
    }
    way.first = to_slice(ceil((range.x - origin_mm.x) / edge_mm.x - 1e-6lf));
    way.last = to_slice(floor((range.y - origin_mm.x) / edge_mm.x + 1e-6lf) + 1.0lf);
    way.step = edge_mm.x * slope / edge_mm.yz;
    way.at = (low.centre.yz + (origin_mm.x - low.centre.x) * slope - origin_mm.yz) / edge_mm.yz;
    // A line through any two points of the faces differs from this line by at most the reach of each face at that face,
    // and by at most the interpolated reach in between. `slack` bounds the error of a plane's relative position between
    // the faces.
    double apart = high.centre.x - low.centre.x, slack = max(of_low.x, of_high.x) / apart;
    dvec2 from = of_low.yz / edge_mm.yz, to = of_high.yz / edge_mm.yz, more = to - from;
    way.widening = slack > 0.25lf ? dvec2(0.0lf) : more * edge_mm.x / apart;
    way.reach = slack > 0.25lf ? max(from, to) : from + more * (origin_mm.x - low.centre.x) / apart + abs(more) * slack;
    dvec2 most = max(from, to);
    narrow(way, way.at.x, way.step.x, size.y, most.x);
    narrow(way, way.at.y, way.step.y, size.z, most.y);
    return way;
}

// Writes the face whose centre lies in this direction.
void put_face(uint at, Face face, dvec3 direction, double length_mm)
{
    uint all = uint(size.w);
    dvec2 edge = edge_mm.yz;
    vec3 lean = vec3(dot(face.across, direction), dot(face.along, direction), -dot(face.normal, direction));
    dvec2 pieces = clamp(ceil(face.half_mm / (double(LR_EVENTS_EXACT_HALF) * 0.5lf * length_mm)), 1.0lf,
                         double(LR_EVENTS_EXACT_PIECES));
    lines[at] = floatBitsToUint(vec4(face.across.yz * edge, face.along.yz * edge));
    lines[at + all] = floatBitsToUint(vec4(vec2(face.normal.yz * edge), lean.xy));
    lines[at + 2u * all] = floatBitsToUint(vec4(lean.z, vec2(face.half_mm), float(pieces.x + 256.0lf * pieces.y)));
}

void put_turn(uint at, Face low, Face high)
{
    lines[at] = floatBitsToUint(vec4(dot(low.across, high.across), dot(low.normal, high.across),
                                     dot(low.across, high.normal), dot(low.along, high.along)));
    lines[at + uint(size.w)] = floatBitsToUint(vec4(dot(low.across, high.along), dot(low.along, high.across),
                                                    dot(low.normal, high.along), dot(low.along, high.normal)));
}

// Writes positions relative to the TOF centre, in standard deviations.
void put_time(uint at, double place_mm, dvec3 direction, dvec2 sigma_bin)
{
    double sigma_mm = sigma_bin.x;
    dvec3 gain = direction * edge_mm.xyz, extents = gain * dvec3(samples.xyz);
    double extent_mm = sqrt(dot(extents, extents));
    lines[at] = floatBitsToUint(vec4(place_mm / sigma_mm, edge_mm.x / (direction.x * sigma_mm),
                                     0.5lf * extent_mm / sigma_mm, 1.0lf / extent_mm));
    lines[at + uint(size.w)] =
        floatBitsToUint(vec4(vec3(gain / sigma_mm), max(float(0.5lf * sigma_bin.y / sigma_mm), NARROWEST_HALF_BIN)));
}

void put_line(uint k, Way way, Face low, Face high, dvec3 direction, dvec2 length_centre, dvec2 sigma_bin)
{
    uint all = uint(size.w);
    double length_mm = length_centre.x, begin = double(way.first);
    dvec2 at = way.at + begin * way.step, reach = way.reach + begin * way.widening;
    double place = (origin_mm.x + begin * edge_mm.x - low.centre.x) / direction.x;
    lines[k] = uvec4(to_fixed(at.x), to_fixed(at.y));
    lines[all + k] = uvec4(to_fixed(way.step.x), to_fixed(way.step.y));
    lines[3u * all + k] = floatBitsToUint(vec4(place, edge_mm.x / direction.x, length_mm, 0.0));
    lines[4u * all + k] = floatBitsToUint(vec4(reach, way.widening));
    put_face(5u * all + k, low, -direction, length_mm);
    put_face(8u * all + k, high, direction, length_mm);
    put_turn(11u * all + k, low, high);
    if (events_first.z != 0) put_time(13u * all + k, place - 0.5lf * length_mm - length_centre.y, direction, sigma_bin);
}

void put(uint k, Event event, int place, float value)
{
    Face low = face_of(event.a), high = face_of(event.b);
    double tof_mm = events_first.z != 0 ? double(event.tof_mm) : 0.0lf;
    dvec2 sigma_bin = events_first.z != 0 ? sigma_and_bin_of(event) : dvec2(0.0lf);
    bool is_turned = high.centre.x < low.centre.x;
    if (is_turned) {
        Face other = low;
        low = high;
        high = other;
    }
    tof_mm = is_turned ? -tof_mm : tof_mm;
    precise dvec3 along = high.centre - low.centre;
    precise double run = sqrt(along.x * along.x + along.y * along.y + along.z * along.z);
    dvec3 direction = along / run;
    Way way = way_of(low, high, direction, tof_mm, sigma_bin);
    bool is_one_module = int(crystals[event.a].w) == int(crystals[event.b].w);
    uint count = is_one_module ? 0u : uint(max(way.last - way.first, 0));
    if (count > 0u) put_line(k, way, low, high, direction, dvec2(run, tof_mm), sigma_bin);
    lines[2u * uint(size.w) + k] = uvec4(way.first, count, place, floatBitsToUint(value));
}
