// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The events at hand, for the passes that make lines of them, one thread an event: which are meant, and
// what they refer to. Includers define
//     void put(uint k, Event event, int place, float value);
// which writes line k of an event whose value stands at `place` of the window. Variants: BINS, where times of
// flight are in bins.
#define LINES_ACCESS writeonly
#include "listmode/lines.glsl"

layout(local_size_x = LR_EVENTS_GROUP) in;

layout(std140, binding = LR_BIND_PASS) uniform Pass {
    dvec4 origin_mm, edge_mm; // along p, u, v, of voxels, or of sample points for exact elements;
                              // origin_mm.w: reach of shares in mm; edge_mm.w: unused
    ivec4 size;               // slices, voxels along u and v, or planes and points; lines at hand
    ivec4 axes;               // p, u, v; whether K reaches one voxel instead
    ivec4 events_first;       // the first event in the buffer; its kinds, 0 = all of kind 0; whether there
                              // is time of flight; whether slices count by their middles
    ivec4 part;               // the first number selected; selected ones; whether places are listed;
                              // whether there are values
    ivec4 values_window;      // the first place of the window, places in it, where they begin; whether
                              // only lines are meant whose values are larger than usual
    ivec4 samples;            // of a voxel along p, u, v
    ivec4 kept;               // where lines begin; how many the buffer has; whether they are to be kept
};

struct Event {
    int a, b;
    float tof_mm;
    int number;
};
layout(std430, binding = LR_BIND_LIST_EVENTS) readonly buffer Events {
    Event events[];
};
layout(std430, binding = LR_BIND_LIST_CRYSTALS) readonly buffer Crystals {
    dvec4 crystals[];
};
layout(std430, binding = LR_BIND_LIST_SIGMAS) readonly buffer Sigmas {
    double sigmas[];
};
layout(std430, binding = LR_BIND_LIST_KINDS) readonly buffer Kinds {
    int kinds[];
};
layout(std430, binding = LR_BIND_LIST_PLACES) readonly buffer Places {
    int places[];
};
layout(std430, binding = LR_BIND_LIST_SCALE) readonly buffer Scale {
    uint largest_term, usual;
};
layout(std430, binding = LR_BIND_LIST_VALUES) readonly buffer Values {
    float values[];
};

void put(uint k, Event event, int place, float value);

// Half of a bin that changes nothing by 1e-5, in standard deviations: of events without one where others have bins.
#define NARROWEST_HALF_BIN 0.005

// Standard deviation of its time of flight, and width of its bin.
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

// Whole voxels and 2^-32ths.
uvec2 to_fixed(double x)
{
    double whole = floor(x);
    return uvec2(uint(int(whole)), uint(min((x - whole) * 4294967296.0lf, 4294967295.0lf)));
}

// Index of an event's value in the window; -1: it is not there.
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

// Not by an index into the vector: NVIDIA's compiler has none for doubles.
dvec3 along_axes(dvec3 point)
{
    return dvec3(along_axis(point, axes.x), along_axis(point, axes.y), along_axis(point, axes.z));
}

void main()
{
    uint k = gl_GlobalInvocationID.x;
    if (k >= uint(size.w)) {
        return;
    }
    Event event = events[uint(events_first.x) + k];
    int place = place_of(event);
    float value = part.w == 0 ? 1.0 : place >= 0 ? values[values_window.z + place] : 0.0;
    bool is_meant = values_window.w == 0 || (floatBitsToUint(value) >> 23 & 255u) > usual;
    if (place >= 0 && is_meant) {
        put(k, event, place, value);
    } else {
        lines[2u * uint(kept.y) + uint(kept.x) + k] = uvec4(0u, 0u, LR_NONE, 0u);
    }
}
