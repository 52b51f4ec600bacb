#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Values of a range in the order of lines that are kept, and a list of the lines whose values are not of the
// usual size.
//
// reads:  lines; places of a part; values; what is usual
// writes: a value for each line, 0 where it is not selected or has no slices; the lists
// shape:  one thread a line
#define KEPT
#define LINES_ACCESS readonly
#include "listmode/lines.glsl"
#include "listmode/fixed64.glsl"
#include "listmode/place.glsl"
#include "listmode/others.glsl"

layout(local_size_x = LR_EVENTS_GROUP) in;

layout(std430, binding = LR_BIND_LIST_VALUES) readonly buffer Values {
    float values[];
};
layout(std430, binding = LR_BIND_LIST_LINE_VALUES) writeonly buffer LineValues {
    float line_values[];
};

void main()
{
    uint k = uint(range.x) + gl_GlobalInvocationID.x;
    if (k >= uint(range.y)) {
        return;
    }
    uvec4 way = lines[2u * uint(frames[0].size.w) + k];
    int place = way.y > 0u ? place_of(int(way.z)) : -1;
    if (place < 0 && values_at.w != 0) {
        return;
    }
    float value = place < 0 ? 0.0 : part.w != 0 ? values[values_at.z + place] : 1.0;
    line_values[k] = value;
    if (value != 0.0 && !is_usual(value)) {
        list_line(k, (way.w & 4u) != 0u);
    }
}
