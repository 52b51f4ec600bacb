#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Events into the image: a group adds many lines to a slab of slices, or to a band of rows of one, in
// shared memory (Cui et al. 2011, II.B.6), and its sums to the image's once.
//
// reads:     lines with their values; what they are scaled by
// writes:    sums of the image, slice by slice
// shape:     groups: lines, slabs
// invariant: sums are integers, the same bits in every run, but where sums_are_floats
// variants: TOF=1; LINE=1; LINE=1 TOF=1; TABLE=1; AS_PAPER=1; AS_PAPER=1 TOF=1
#define LINES_ACCESS readonly
#include "listmode/kernel.glsl"
#include "listmode/fixed64.glsl"

layout(local_size_x = LR_EVENTS_GROUP) in;

layout(std430, binding = LR_BIND_LIST_SUMS) buffer Sums {
    uint sums[]; // [voxels][2]
};

shared uint low_words[CELLS / 2], high_words[CELLS / 2];

// What the group holds.
struct Slab {
    int first, last; // slices
    int row, rows;
};

Slab slab_of(int number)
{
    int first = window.x + number / slab.z * slab.x, row = number % slab.z * slab.y;
    return Slab(first, min(first + slab.x, window.y), row, min(slab.y, size.z - row));
}

void add_term(int cell, float term)
{
    if (sums_are_floats()) {
        ADD_FLOAT(low_words[cell], term)
    } else {
        uvec2 words = to_words(term);
        ADD_WORDS(low_words[cell], high_words[cell], words)
    }
}

void add_slice(Line line, Kernel kernel, int j, float value, Slab held)
{
    Box box = box_of(line, kernel, j);
    int from = max(held.row - box.low.y, 0);
    int to = min(held.row + held.rows - box.low.y, kernel.width.y);
    if (from >= to || box.low.x >= size.y || box.low.x + kernel.width.x <= 0) {
        return;
    }
    float factor = value * slice_factor(line, j);
#if NORMALISED
    float sum = sum_of_shares(kernel, box);
    factor = sum > 0.0 ? factor / sum : 0.0;
#endif
    int slice = (line.first + j - held.first) * held.rows;
    for (int v = from; v < to; v++) {
        int row = (slice + box.low.y + v - held.row) * size.y;
        Row shares = row_of(kernel, box, v);
        for (int u = 0; u < kernel.width.x; u++) {
            int at = box.low.x + u;
            float share = share_of(kernel, shares, u);
            if (share > 0.0 && uint(at) < uint(size.y)) {
                add_term(row + at, factor * share);
            }
        }
    }
}

void add_line(uint k, Slab held)
{
    uvec4 way = lines[2u * uint(size.w) + k];
    int from = max(held.first - int(way.x), 0), to = min(held.last - int(way.x), int(way.y));
    float value = scaled(uintBitsToFloat(way.w));
    if (from < to && value != 0.0) {
        Line line = line_of(k);
        Kernel kernel = kernel_of(line);
        for (int j = from; j < to; j++) {
            add_slice(line, kernel, j, value, held);
        }
    }
}

int cells_of(Slab held)
{
    return (held.last - held.first) * held.rows * size.y;
}

void clear(Slab held)
{
    int count = cells_of(held);
    for (int k = int(gl_LocalInvocationIndex); k < count; k += LR_EVENTS_GROUP) {
        low_words[k] = 0u;
        high_words[k] = 0u;
    }
}

// Slices of a slab have all rows, or it has but one slice.
void flush(Slab held)
{
    int count = cells_of(held), first = (held.first * size.z + held.row) * size.y;
    for (int k = int(gl_LocalInvocationIndex); k < count; k += LR_EVENTS_GROUP) {
        int at = 2 * (first + k);
        uvec2 words = uvec2(low_words[k], high_words[k]);
        if (!sums_are_floats()) {
            ADD_WORDS(sums[at], sums[at + 1], words)
        } else if (words.x != 0u) {
            ADD_FLOAT(sums[at], uintBitsToFloat(words.x))
        }
    }
}

void main()
{
    Slab held = slab_of(int(gl_WorkGroupID.y));
    uint first = gl_WorkGroupID.x * uint(slab.w), last = min(first + uint(slab.w), uint(size.w));
    clear(held);
    barrier();
    for (uint k = first + gl_LocalInvocationIndex; k < last; k += LR_EVENTS_GROUP) {
        add_line(k, held);
    }
    barrier();
    flush(held);
}
