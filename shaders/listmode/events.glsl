// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The current events, for the passes that compute lines with one thread per event: the selection of events, and the
// tables that events refer to. The including file defines void put(uint k, Event event, int place, float value), which
// writes line k. `place` is the index of the event's value in the window. Variants: BINS, if times of flight are in
// bins.
#define LINES_ACCESS writeonly
#include "listmode/lines.glsl"

layout(local_size_x = LR_EVENTS_GROUP) in;

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    dvec4 origin_mm, edge_mm; // along p, u, v: first position and size of voxels, or of sample points for exact
                              // elements; origin_mm.w: reach of shares, mm; edge_mm.w: unused
    ivec4 size;               // x: slices; y, z: voxels along u and v (exact elements: x: planes; y, z: points along u
                              // and v); w: number of current lines
    ivec4 axes;               // x, y, z: p, u, v; w: 1 if a thin line has shares up to one voxel away (bilinear)
    ivec4 events_first;       // x: index of the first event in the buffer of events; y: its index in the buffer of
                              // kinds (0 = all events are of kind 0); z: 1 with TOF; w: 1 if a slice counts only where
                              // its middle is on the line
    ivec4 part;               // x: number of the first selected event; y: number of selected events; z: 1 if there is a
                              // map of places; w: 1 if there are values
    ivec4 values_window;      // x: first place of the window; y: number of places; z: index of the first place's value;
                              // w: 1 to select only lines with values larger than usual
    ivec4 samples;            // numbers of samples of a voxel along p, u, v
    ivec4 kept;               // x: index of the first line; y: number of lines of the buffer; z: 1 if lines are kept
};

struct Event {
    int a, b;
    float tof_mm;
    int number;
};
layout(std430, binding = LR_BIND_LIST_EVENTS) readonly buffer Events
{
    Event events[];
};
layout(std430, binding = LR_BIND_LIST_CRYSTALS) readonly buffer Crystals
{
    dvec4 crystals[];
};
layout(std430, binding = LR_BIND_LIST_SIGMAS) readonly buffer Sigmas
{
    double sigmas[];
};
layout(std430, binding = LR_BIND_LIST_KINDS) readonly buffer Kinds
{
    int kinds[];
};
layout(std430, binding = LR_BIND_LIST_PLACES) readonly buffer Places
{
    int places[];
};
layout(std430, binding = LR_BIND_LIST_SCALE) readonly buffer Scale
{
    uint largest_term, usual;
};
layout(std430, binding = LR_BIND_LIST_VALUES) readonly buffer Values
{
    float values[];
};

void put(uint k, Event event, int place, float value);

// If some events have a TOF bin, events without a bin get a bin of twice this width, in standard deviations. Such a bin
// is so narrow that results change by less than 1e-5.
#define NARROWEST_HALF_BIN 0.005

// Standard deviation of the event's TOF, and width of its bin, in mm.
dvec2 sigma_and_bin_of(Event event)
{
    int count = events_first.y, at = 0;
    if (count != 0) {
        int a = kinds[event.a], b = kinds[event.b];
        at = a < count && b < count ? a * count + b : -1;
    }
#ifdef BINS
    int all = max(count * count, 1);
    return at >= 0 ? dvec2(sigmas[at], sigmas[all + at]) : dvec2(0.0lf);
#else
    return at >= 0 ? dvec2(sigmas[at], 0.0lf) : dvec2(0.0lf);
#endif
}

int to_slice(double s)
{
    return int(clamp(s, 0.0lf, double(size.x)));
}

// Splits x into whole voxels and a fraction in units of 2^-32 voxel.
uvec2 to_fixed(double x)
{
    double whole = floor(x);
    return uvec2(uint(int(whole)), uint(min((x - whole) * 4294967296.0lf, 4294967295.0lf)));
}

// Index of an event's value in the window; -1 if the window does not have the value.
int place_of(Event event)
{
    int place = part.z != 0 ? places[event.number] : event.number - part.x;
    int within = place - values_window.x;
    return place >= 0 && place < part.y && within >= 0 && within < values_window.y ? within : -1;
}

double along_axis(dvec3 point, int axis)
{
    return axis == 0 ? point.x : axis == 1 ? point.y : point.z;
}

// Converts a vector to the order of the axes p, u, v. The components are chosen by branches, because NVIDIA's compiler
// cannot index vectors of doubles.
dvec3 along_axes(dvec3 point)
{
    return dvec3(along_axis(point, axes.x), along_axis(point, axes.y), along_axis(point, axes.z));
}

void main()
{
    uint k = gl_GlobalInvocationID.x;
    if (k >= uint(size.w)) return;
    Event event = events[uint(events_first.x) + k];
    int place = place_of(event);
    float value = part.w == 0 ? 1.0 : place >= 0 ? values[values_window.z + place] : 0.0;
    bool is_meant = values_window.w == 0 || (floatBitsToUint(value) >> 23 & 255u) > usual;
    if (place >= 0 && is_meant)
        put(k, event, place, value);
    else
        lines[2u * uint(kept.y) + uint(kept.x) + k] = uvec4(0u, 0u, LR_NONE, 0u);
}
