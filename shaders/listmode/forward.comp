#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Computes values of events from an image. If a slice fits into shared memory, all lines of a group use the same copy
// of it (Cui et al. 2011, II.B.2, II.B.5).
//
// reads:     lines; the image, slice by slice
// writes:    a value for each selected line, also for lines that see nothing
// shape:     one thread for each line; with KEPT (kept lines), all lines of a group have the same
//            axis
// invariant: a value does not depend on other lines
// variants: TOF=1; LINE=1; LINE=1 TOF=1 SLABS=1; TABLE=1 SLABS=1; AS_PAPER=1; AS_PAPER=1 TOF=1; KEPT=1 SLABS=1; KEPT=1 SLABS=1 TOF=1; KEPT=1 SLABS=1 LINE=1; TOF=1 BINS=1; AS_PAPER=1 TOF=1 BINS=1
#define LINES_ACCESS readonly
#include "listmode/kernel.glsl"
#ifdef KEPT
#include "listmode/job.glsl"
#include "listmode/place.glsl"
#endif

#ifndef GROUP
#ifdef SLABS
#define GROUP LR_EVENTS_SLAB_GROUP
#else
#define GROUP LR_EVENTS_GROUP
#endif
#endif
layout(local_size_x = GROUP) in;

layout(std430, binding = LR_BIND_LIST_SLICES) readonly buffer Slices
{
    float image[];
};
layout(std430, binding = LR_BIND_LIST_VALUES) buffer Values
{
    float values[];
};

#ifdef SLABS
shared float cells[CELLS];
#define VOXEL(slice, first, k) cells[((slice) - (first)) * size.y * size.z + (k)]
#else
#define VOXEL(slice, first, k) image[(slice)*size.y * size.z + (k)]
#endif

// The sum of a line over a part of a slice, and the sum of its shares in this part.
struct Seen {
    float sum, shares;
};

float see_voxel(bool is_voxel, int slice, int first, int k)
{
    return is_voxel ? VOXEL(slice, first, k) : 0.0;
}

// Adds up the shares times the values of four neighbouring voxels, from voxel k on.
float see_four(bool is_row, bvec4 is_column, int slice, int first, int k, vec4 shares)
{
    return shares.x * see_voxel(is_row && is_column.x, slice, first, k) +
           shares.y * see_voxel(is_row && is_column.y, slice, first, k + 1) +
           (shares.z * see_voxel(is_row && is_column.z, slice, first, k + 2) +
            shares.w * see_voxel(is_row && is_column.w, slice, first, k + 3));
}

// Adds row v of four voxels.
float see_row(Box box, bvec4 is_column, int slice, int first, int v, vec4 shares)
{
    int row = box.low.y + v;
    return see_four(is_within(row, size.z), is_column, slice, first, row * size.y + box.low.x, shares);
}

// Each row has separate code, because compilers may keep an array of rows in slow memory.
Seen see_narrow(Kernel kernel, Box box, int slice, int first)
{
    bvec4 is_column = columns_of(box);
    vec4 a = four_shares(kernel, row_of(kernel, box, 0));
    vec4 b = four_shares(kernel, row_of(kernel, box, 1));
    vec4 c = four_shares(kernel, row_of(kernel, box, 2));
    vec4 d = four_shares(kernel, row_of(kernel, box, 3));
    float sum = see_row(box, is_column, slice, first, 0, a);
    sum += see_row(box, is_column, slice, first, 1, b);
    sum += see_row(box, is_column, slice, first, 2, c);
    sum += see_row(box, is_column, slice, first, 3, d);
    return Seen(sum, sum_of(a + b + (c + d)));
}

// Adds row v of five voxels.
Seen see_five(Kernel kernel, Box box, bvec4 is_column, int slice, int first, int v)
{
    int row = box.low.y + v, last = box.low.x + WIDE - 1;
    Row shares_of = row_of(kernel, box, v);
    vec4 shares = four_shares(kernel, shares_of);
    float share = share_of(kernel, shares_of, WIDE - 1);
    bool is_last = is_within(row, size.z) && is_within(last, size.y);
    float sum = see_row(box, is_column, slice, first, v, shares);
    sum += share * see_voxel(is_last, slice, first, row * size.y + last);
    return Seen(sum, sum_of(shares) + share);
}

Seen see_wide(Kernel kernel, Box box, int slice, int first)
{
    bvec4 is_column = columns_of(box);
    Seen a = see_five(kernel, box, is_column, slice, first, 0);
    Seen b = see_five(kernel, box, is_column, slice, first, 1);
    Seen c = see_five(kernel, box, is_column, slice, first, 2);
    Seen d = see_five(kernel, box, is_column, slice, first, 3);
    Seen e = see_five(kernel, box, is_column, slice, first, 4);
    return Seen(a.sum + b.sum + (c.sum + d.sum) + e.sum, a.shares + b.shares + (c.shares + d.shares) + e.shares);
}

#ifdef LINE
Seen see_thin(Box box, int slice, int first)
{
    vec4 shares = thin_shares(box);
    int k = box.low.y * size.y + box.low.x;
    bvec2 is_row = lessThan(uvec2(box.low.y + ivec2(0, 1)), uvec2(uint(size.z)));
    bvec2 is_column = lessThan(uvec2(box.low.x + ivec2(0, 1)), uvec2(uint(size.y)));
    float sum = shares.x * see_voxel(is_row.x && is_column.x, slice, first, k);
    sum += shares.y * see_voxel(is_row.x && is_column.y, slice, first, k + 1);
    sum += shares.z * see_voxel(is_row.y && is_column.x, slice, first, k + size.y);
    sum += shares.w * see_voxel(is_row.y && is_column.y, slice, first, k + size.y + 1);
    return Seen(sum, 1.0);
}
#endif

Seen see_any(Kernel kernel, Box box, int slice, int first)
{
    Seen seen = Seen(0.0, 0.0);
    for (int v = 0; v < kernel.width.y; v++) {
        int row = box.low.y + v;
        bool is_row = is_within(row, size.z);
        Row shares = row_of(kernel, box, v);
        for (int u = 0; u < kernel.width.x; u++) {
            float share = share_of(kernel, shares, u);
            int at = box.low.x + u;
            seen.shares += share;
            if (is_row && is_within(at, size.y)) seen.sum += share * VOXEL(slice, first, row * size.y + at);
        }
    }
    return seen;
}

Seen see_slice(Kernel kernel, Box box, int slice, int first)
{
#ifdef LINE
    return see_thin(box, slice, first);
#else
    if (fits(kernel, NARROW))
        return see_narrow(kernel, box, slice, first);
    else if (fits(kernel, WIDE))
        return see_wide(kernel, box, slice, first);
    return see_any(kernel, box, slice, first);
#endif
}

// Adds up a line over slices first .. last - 1, which are in shared memory.
float see(Line line, Kernel kernel, int first, int last)
{
    float sum = 0.0;
    int from = max(first - line.first, 0), to = min(last - line.first, line.count);
    uvec4 at = crossing_at(line, from);
    for (int j = from; j < to; j++) {
        Seen seen = see_slice(kernel, box_at(kernel, at), line.first + j, first);
        float factor = slice_factor(line, j);
        step_on(at, line.step);
#if NORMALISED
        sum += seen.shares > 0.0 ? factor * seen.sum / seen.shares : 0.0;
#else
        sum += factor * seen.sum;
#endif
    }
    return sum;
}

#ifdef SLABS
#ifdef KEPT
#define FRAME_BEGIN frame_begin
#else
#define FRAME_BEGIN 0
#endif

void fetch(int first, int last)
{
    int plane = size.y * size.z, count = (last - first) * plane;
    barrier();
    for (int k = int(gl_LocalInvocationIndex); k < count; k += GROUP) cells[k] = image[FRAME_BEGIN + first * plane + k];
    barrier();
}

// Adds up a line slab by slab. from: first slice of the first slab. It is the same for all lines, so that the order of
// a line's sums does not depend on the other lines of the group.
float see_slabs(Line line, Kernel kernel, int from, int to)
{
    float sum = 0.0;
    for (int first = from; first < to; first += slab.x) {
        int last = min(first + slab.x, to);
        fetch(first, last);
        sum += see(line, kernel, first, last);
    }
    return sum;
}
#endif

#ifdef KEPT
void main()
{
    Job job;
    if (!next_job(job)) return;
    uint k = uint(job.lines.x) + gl_LocalInvocationIndex;
    Line line = no_line();
    int place = -1;
    if (gl_LocalInvocationIndex < uint(job.lines.y)) place = place_of(int(lines[2u * uint(size.w) + k].z));
    if (place >= 0) line = line_of(k);
    if (line.count == 0) line = no_line();
    int from = job.slices.x / slab.x * slab.x;
    float sum = see_slabs(line, kernel_of(line), from, job.slices.y);
    if (place >= 0) values[values_at.z + place] = sum;
}
#else
#ifdef SLABS
shared int lowest, highest;

// Finds the range of slices that lines of the group cross.
void find_slices(Line line)
{
    if (gl_LocalInvocationIndex == 0u) {
        lowest = window.y;
        highest = window.x;
    }
    barrier();
    if (line.count > 0) {
        atomicMin(lowest, max(line.first, window.x));
        atomicMax(highest, min(line.first + line.count, window.y));
    }
    barrier();
}

float see_window(Line line, Kernel kernel)
{
    find_slices(line);
    int from = window.x + (lowest - window.x) / slab.x * slab.x;
    return see_slabs(line, kernel, from, highest);
}
#else
float see_window(Line line, Kernel kernel)
{
    return see(line, kernel, window.x, window.y);
}
#endif

void main()
{
    uint k = gl_GlobalInvocationID.x;
    Line line = no_line();
    uint place = LR_NONE;
    if (k < uint(size.w)) {
        line = line_of(k);
        place = lines[2u * uint(size.w) + k].z;
    }
    if (line.count == 0) line = no_line();
    float sum = see_window(line, kernel_of(line));
    if (place != LR_NONE) {
        uint at = uint(window.w) + place;
        values[at] = window.z != 0 ? values[at] + sum : sum;
    }
}
#endif
