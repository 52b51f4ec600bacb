#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Adds lines with values of unusual size to the image's sums, slice by slice. BOUND: adds no line, but finds the
// largest term of lines whose values are larger than usual (listmode/bound.comp).
//
// reads: the list; lines with their values; their scale
// writes: sums of the image, slice by slice; with BOUND scale.largest_term
// shape: LR_EVENTS_SHARE threads for each line; each takes every n-th slice
// invariant: sums are integers with the same bits in every run, except if sums_are_floats
// variants: TOF=1; LINE=1; LINE=1 TOF=1; TABLE=1; AS_PAPER=1; AS_PAPER=1 TOF=1; BOUND=1; BOUND=1 TOF=1; BOUND=1 LINE=1; TOF=1 BINS=1; AS_PAPER=1 TOF=1 BINS=1
#include "common/atomic64.glsl"
#define KEPT
#define LINES_ACCESS readonly
#include "listmode/kernel.glsl"
#include "listmode/largest.glsl"
#include "listmode/others.glsl"
#include "listmode/sums.glsl"

layout(local_size_x = LR_EVENTS_GROUP) in;

layout(std430, binding = LR_BIND_LIST_LINE_VALUES) readonly buffer LineValues
{
    float line_values[];
};

#ifdef BOUND
shared uint group_most;

void take_line(uint k, uint share)
{
    uint own = exponent_of(line_values[k]);
    if (own <= known_usual) return;
    Line line = line_of(k);
    Kernel kernel = kernel_of(line);
    float most = 0.0;
    for (int j = int(share); j < line.count; j += LR_EVENTS_SHARE) most = max(most, largest_of(line, kernel, j));
    if (most > 0.0) atomicMax(group_most, own + exponent_of(most) + uint(LR_EVENTS_EXPONENT - 2 * 126));
}
#else
void add_slice(Line line, Kernel kernel, float value, int j)
{
    Box box = box_of(line, kernel, j);
    float factor = value * slice_factor(line, j);
    int first = frame_begin + (line.first + j) * size.y * size.z;
#if NORMALISED
    float sum = sum_of_shares(kernel, box);
    factor = sum > 0.0 ? factor / sum : 0.0;
#endif
    for (int v = max(-box.low.y, 0); v < min(size.z - box.low.y, kernel.width.y); v++) {
        Row shares = row_of(kernel, box, v);
        for (int u = max(-box.low.x, 0); u < min(size.y - box.low.x, kernel.width.x); u++) {
            float share = share_of(kernel, shares, u);
            if (share > 0.0) add_to_sums(first + (box.low.y + v) * size.y + box.low.x + u, factor * share);
        }
    }
}

void take_line(uint k, uint share)
{
    Line line = line_of(k);
    Kernel kernel = kernel_of(line);
    float value = scaled(line_values[k]);
    for (int j = int(share); j < line.count && value != 0.0; j += LR_EVENTS_SHARE) add_slice(line, kernel, value, j);
}
#endif

void take_lines()
{
    uint which = uint(range.z), count = num_others[which];
    uint all = gl_NumWorkGroups.x * (LR_EVENTS_GROUP / LR_EVENTS_SHARE);
    for (uint n = gl_GlobalInvocationID.x / LR_EVENTS_SHARE; n < count; n += all) {
        uint k = others[which * uint(range.w) + n];
        enter_frame(int(lines[2u * uint(frames[0].size.w) + k].w & 3u));
        take_line(k, gl_GlobalInvocationID.x % LR_EVENTS_SHARE);
    }
}

void main()
{
    enter_frame(0);
    read_scale();
#ifdef BOUND
    if (gl_LocalInvocationIndex == 0u) group_most = 0u;
    barrier();
    take_lines();
    barrier();
    if (gl_LocalInvocationIndex == 0u && group_most > 0u) atomicMax(largest_term, group_most);
#else
    take_lines();
#endif
}
