#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Copies the values of a range to the order of kept lines, and lists the lines with values of unusual size.
//
// reads:  lines; places of a part; values; the usual exponent
// writes: a value for each line, 0 if the line is not selected or has no slices; the lists
// shape:  one thread for each line
#define KEPT
#define LINES_ACCESS readonly
#include "listmode/fixed64.glsl"
#include "listmode/lines.glsl"
#include "listmode/others.glsl"
#include "listmode/place.glsl"

layout(local_size_x = LR_EVENTS_GROUP) in;

layout(std430, binding = LR_BIND_LIST_VALUES) readonly buffer Values
{
    float values[];
};
layout(std430, binding = LR_BIND_LIST_LINE_VALUES) writeonly buffer LineValues
{
    float line_values[];
};

// num_listed: number of the group's listed lines, [0] without TOF, [1] with TOF; first_listed: index in `others` of the
// first of these lines. The group adds to the buffer's counter only once, because an atomic addition by every thread
// would take long.
shared uint num_listed[2], first_listed[2];

// Writes the value of line k. Returns false if the line is not listed.
bool bring_value(uint k, uvec4 way)
{
    int place = way.y > 0u ? place_of(int(way.z)) : -1;
    if (place < 0 && values_at.w != 0) return false;
    float value = place < 0 ? 0.0 : part.w != 0 ? values[values_at.z + place] : 1.0;
    line_values[k] = value;
    return value != 0.0 && !is_usual(value);
}

void main()
{
    uint own = gl_LocalInvocationIndex, k = uint(range.x) + gl_GlobalInvocationID.x;
    uint side = 0u, slot = 0u;
    bool is_listed = false;
    if (own < 2u) num_listed[own] = 0u;
    enter_frame(0);
    read_scale();
    barrier();
    if (k < uint(range.y)) {
        uvec4 way = lines[2u * uint(frames[0].size.w) + k];
        side = way.w >> 2 & 1u;
        is_listed = bring_value(k, way);
    }
    if (is_listed) slot = atomicAdd(num_listed[side], 1u);
    barrier();
    if (own < 2u && num_listed[own] > 0u)
        first_listed[own] = own * uint(range.w) + atomicAdd(num_others[own], num_listed[own]);
    barrier();
    if (is_listed) others[first_listed[side] + slot] = k;
}
