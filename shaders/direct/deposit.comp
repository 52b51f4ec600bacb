#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Deposits events into histo-images (docs/method/direct.md, "Deposition"). Positions and views are computed in double.
// They equal those of the CPU, except for events within rounding of a border.
//
// reads: events; centres of crystals; borders of views
// writes: sums of the current views; outcomes of the events
// shape: one thread for each event
// invariant: sums are integers, so every run gives the same bits
// variants: TRILINEAR=1
#include "common/bindings.h"
#define FIXED_BINDING LR_BIND_DEPOSIT_SUMS
#include "common/fixed.glsl"

layout(local_size_x = LR_DIRECT_GROUP) in;

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    dvec4 origin_mm, voxel_mm; // origin_mm.w: width of the TOF bin
    ivec4 size;                // x, y, z: numbers of voxels; w: number of events
    ivec4 views;               // x, y: numbers of azimuths and tilts; z: first current view; w: number of current views
    float scale;               // scale of weights
    int is_first;              // 1 if events are counted
    int parts;                 // number of parts into which an event is spread over its TOF bin
};

struct Event {
    int a, b;
    float tof_mm, weight;
};
layout(std430, binding = LR_BIND_DEPOSIT_EVENTS) readonly buffer Events
{
    Event events[];
};
layout(std430, binding = LR_BIND_DEPOSIT_CRYSTALS) readonly buffer Crystals
{
    dvec4 crystals[];
};
// Cosines and sines of borders: the lower border of each azimuth's interval, the lower border of each
// tilt's interval, and the end of the last tilt's interval.
layout(std430, binding = LR_BIND_DEPOSIT_BORDERS) readonly buffer Borders
{
    dvec2 borders[];
};
layout(std430, binding = LR_BIND_DEPOSIT_TALLIES) buffer Tallies
{
    uint tallies[];
};

shared uint tally[3];

// True if a direction across the axis lies on a border or to its left.
bool is_past(int border, dvec2 across)
{
    precise double left = borders[border].x * across.y - borders[border].y * across.x;
    return left >= 0.0;
}

// Finds the last border that a direction has passed, among the borders first .. first + count - 1. Border `first` must
// be one that the direction has passed.
int find_interval(int first, int count, dvec2 direction)
{
    int low = 0, high = count;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (is_past(first + middle, direction))
            low = middle;
        else
            high = middle;
    }
    return low;
}

// The view of a direction; -1 = none.
int find_view(dvec3 along)
{
    along = is_past(0, along.xy) ? along : -along;
    precise double across = sqrt(along.x * along.x + along.y * along.y);
    dvec2 slope = dvec2(across, along.z);
    if (across <= 0.0 || !is_past(views.x, slope) || is_past(views.x + views.y, slope)) return -1;
    return find_interval(views.x, views.y, slope) * views.x + find_interval(0, views.x, along.xy);
}

uint row_of(ivec3 voxel)
{
    voxel = clamp(voxel, ivec3(0), size.xyz - 1);
    return uint(voxel.x + size.x * (voxel.y + size.y * voxel.z));
}

void add(uint first, dvec3 place, float weight)
{
#ifdef TRILINEAR
    dvec3 low = floor(place);
    dvec3 part = place - low;
    for (int corner = 0; corner < 8; corner++) {
        ivec3 upper = ivec3(corner & 1, corner >> 1 & 1, corner >> 2 & 1);
        double share = double(weight);
        for (int k = 0; k < 3; k++) share *= upper[k] == 1 ? part[k] : 1.0lf - part[k];
        fixed_add(first + row_of(ivec3(low) + upper), float(share) * scale);
    }
#else
    fixed_add(first + row_of(ivec3(floor(place + 0.5lf))), weight * scale);
#endif
}

// Deposits an event if its view is one of the current views. Returns the outcome of the event, an LR_DEPOSIT_TALLY
// number.
int deposit(Event event)
{
    precise dvec3 a = crystals[event.a].xyz;
    precise dvec3 along = crystals[event.b].xyz - a;
    int view = find_view(along);
    if (view < 0) return LR_DEPOSIT_TALLY_TILTED;
    precise double length_mm = sqrt(along.x * along.x + along.y * along.y + along.z * along.z);
    dvec3 end = dvec3(size.xyz) - 0.5lf;
    float weight = event.weight / float(parts);
    int tallied = LR_DEPOSIT_TALLY_OUTSIDE;
    for (int k = 0; k < parts; k++) {
        precise double off_mm = ((double(k) + 0.5lf) / double(parts) - 0.5lf) * origin_mm.w;
        precise double share = 0.5lf + (double(event.tof_mm) + off_mm) / length_mm;
        precise dvec3 point_mm = a + share * along;
        precise dvec3 place = (point_mm - origin_mm.xyz) / voxel_mm.xyz;
        bool is_inside = all(greaterThanEqual(place, dvec3(-0.5lf))) && all(lessThan(place, end));
        if (is_inside && view >= views.z && view < views.z + views.w)
            add(uint(view - views.z) * uint(size.x * size.y * size.z), place, weight);
        tallied = is_inside ? LR_DEPOSIT_TALLY_DONE : tallied;
    }
    return tallied;
}

void main()
{
    uint k = gl_LocalInvocationIndex;
    if (k < 3u) tally[k] = 0u;
    barrier();
    if (int(gl_GlobalInvocationID.x) < size.w) atomicAdd(tally[deposit(events[gl_GlobalInvocationID.x])], 1u);
    barrier();
    if (k < 3u && is_first != 0 && tally[k] > 0u) atomicAdd(tallies[k], tally[k]);
}
