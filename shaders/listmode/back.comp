#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Events into the image: a group adds many lines to a slab of slices, or to a band of rows of one, in
// shared memory (Cui et al. 2011, II.B.6), and its sums to the image's once. A word holds a group's sum
// where values are of the usual size; lines with other values are added to the image's sums themselves.
//
// reads:     lines with their values; what they are scaled by
// writes:    sums of the image, slice by slice
// shape:     groups: lines, slabs
// invariant: sums are integers, the same bits in every run, but where sums_are_floats
// variants: TOF=1; LINE=1; LINE=1 TOF=1; TABLE=1; AS_PAPER=1; AS_PAPER=1 TOF=1
#define LINES_ACCESS readonly
#include "listmode/kernel.glsl"
#include "listmode/sums.glsl"

layout(local_size_x = LR_EVENTS_GROUP) in;

shared int cells[CELLS];
shared int cell_bits;             // a value of 1 is 2 to this in a cell
shared uint all_sizes, has_others; // of the group's usual values, and whether it has other ones

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

// A slice of a line on its way to the group's cells.
struct Slice {
    Box box;
    float factor; // of shares: the value with it
    int row;      // of the box's lowest voxel, from the slab's lowest one
    int cell;     // of that voxel, which may lie outside
};

// --- to the group's cells ---

bool has_small_terms; // below 2^21, as they are where many lines are added up

// Of small numbers by their bits, which takes fewer instructions.
ivec4 nearest(vec4 terms)
{
    if (!has_small_terms) {
        return ivec4(roundEven(terms));
    }
    precise vec4 moved = terms + 12582912.0;
    return floatBitsToInt(moved) - 0x4b400000;
}

void add_to_cell(int cell, bool is_held, int whole)
{
    if (is_held && whole != 0) {
        atomicAdd(cells[cell], whole);
    }
}

void add_four(int cell, bool is_row, bvec4 is_column, vec4 terms)
{
    ivec4 whole = nearest(terms);
    add_to_cell(cell, is_row && is_column.x, whole.x);
    add_to_cell(cell + 1, is_row && is_column.y, whole.y);
    add_to_cell(cell + 2, is_row && is_column.z, whole.z);
    add_to_cell(cell + 3, is_row && is_column.w, whole.w);
}

// The factor of the shares of a slice, of which this is the sum.
float factor_of(float factor, float sum)
{
#if NORMALISED
    return sum > 0.0 ? factor / sum : 0.0;
#else
    return factor;
#endif
}

void add_narrow(Kernel kernel, Slice slice, Slab held)
{
    vec4 rows[NARROW];
    rows[0] = four_shares(kernel, row_of(kernel, slice.box, 0));
    rows[1] = four_shares(kernel, row_of(kernel, slice.box, 1));
    rows[2] = four_shares(kernel, row_of(kernel, slice.box, 2));
    rows[3] = four_shares(kernel, row_of(kernel, slice.box, 3));
    float factor = factor_of(slice.factor, sum_of(rows[0] + rows[1] + (rows[2] + rows[3])));
    bvec4 is_column = columns_of(slice.box);
    for (int v = 0; v < NARROW; v++) {
        add_four(slice.cell + v * size.y, is_within(slice.row + v, held.rows), is_column,
                 factor * rows[v]);
    }
}

void add_wide(Kernel kernel, Slice slice, Slab held)
{
    vec4 rows[WIDE], all = vec4(0.0);
    float last[WIDE], sum = 0.0;
    for (int v = 0; v < WIDE; v++) {
        Row shares = row_of(kernel, slice.box, v);
        rows[v] = four_shares(kernel, shares);
        last[v] = share_of(kernel, shares, WIDE - 1);
        all += rows[v];
        sum += last[v];
    }
    float factor = factor_of(slice.factor, sum_of(all) + sum);
    bvec4 is_column = columns_of(slice.box);
    bool is_last = is_within(slice.box.low.x + WIDE - 1, size.y);
    for (int v = 0; v < WIDE; v++) {
        int cell = slice.cell + v * size.y;
        bool is_row = is_within(slice.row + v, held.rows);
        add_four(cell, is_row, is_column, factor * rows[v]);
        add_to_cell(cell + WIDE - 1, is_row && is_last, nearest(vec4(factor * last[v])).x);
    }
}

// --- of any size ---

// first: the voxel that is the slab's first cell; to_cells: else to the image's sums.
void add_any(Kernel kernel, Slice slice, Slab held, bool to_cells)
{
    int first = (held.first * size.z + held.row) * size.y;
#if NORMALISED
    float factor = factor_of(slice.factor, sum_of_shares(kernel, slice.box));
#else
    float factor = slice.factor;
#endif
    int from = max(-slice.row, 0), to = min(held.rows - slice.row, kernel.width.y);
    for (int v = from; v < to; v++) {
        Row shares = row_of(kernel, slice.box, v);
        for (int u = 0; u < kernel.width.x; u++) {
            float share = share_of(kernel, shares, u), term = factor * share;
            int cell = slice.cell + v * size.y + u;
            bool is_held = is_within(slice.box.low.x + u, size.y);
            if (to_cells) {
                add_to_cell(cell, is_held, nearest(vec4(term)).x);
            } else if (is_held && share > 0.0) {
                add_to_sums(first + cell, term);
            }
        }
    }
}

// --- line by line ---

// Windows that lines are added in: NARROW, WIDE, 0 for any.
int window_of(Kernel kernel, bool to_cells)
{
#ifdef LINE
    return 0;
#else
    return !to_cells ? 0 : fits(kernel, NARROW) ? NARROW : fits(kernel, WIDE) ? WIDE : 0;
#endif
}

void add_slice(Kernel kernel, Slice slice, Slab held, int window, bool to_cells)
{
    if (slice.row >= held.rows || slice.row + kernel.width.y <= 0 ||
        slice.box.low.x >= size.y || slice.box.low.x + kernel.width.x <= 0) {
        return;
    }
    if (window == NARROW) {
        add_narrow(kernel, slice, held);
    } else if (window == WIDE) {
        add_wide(kernel, slice, held);
    } else {
        add_any(kernel, slice, held, to_cells);
    }
}

// Slices of line k that the group holds, counted from its first one: first, and behind the last.
ivec2 slices_of(uvec4 way, Slab held)
{
    return ivec2(max(held.first - int(way.x), 0), min(held.last - int(way.x), int(way.y)));
}

void add_line(uint k, Slab held)
{
    uvec4 way = lines[2u * uint(size.w) + k];
    ivec2 slices = slices_of(way, held);
    float value = uintBitsToFloat(way.w);
    if (slices.x >= slices.y || value == 0.0) {
        return;
    }
    bool to_cells = is_usual(value);
    value = to_cells ? scaled_for_cells(value, cell_bits) : scaled(value);
    Line line = line_of(k);
    Kernel kernel = kernel_of(line);
    int window = window_of(kernel, to_cells);
    uvec4 at = crossing_at(line, slices.x);
    for (int j = slices.x; j < slices.y; j++) {
        Slice slice;
        slice.box = box_at(kernel, at);
        slice.factor = value * slice_factor(line, j);
        slice.row = slice.box.low.y - held.row;
        slice.cell = ((line.first + j - held.first) * held.rows + slice.row) * size.y +
                     slice.box.low.x;
        add_slice(kernel, slice, held, window, to_cells);
        step_on(at, line.step);
    }
}

// How large the values of lines first .. last - 1 are together.
void find_sizes(uint first, uint last, Slab held)
{
    uint sizes = 0u;
    bool others = false;
    for (uint k = first + gl_LocalInvocationIndex; k < last; k += LR_EVENTS_GROUP) {
        uvec4 way = lines[2u * uint(size.w) + k];
        ivec2 slices = slices_of(way, held);
        float value = uintBitsToFloat(way.w);
        if (slices.x < slices.y && is_usual(value)) {
            sizes += size_of_usual(value);
        } else if (slices.x < slices.y && value != 0.0) {
            others = true;
        }
    }
    if (sizes > 0u) {
        atomicAdd(all_sizes, sizes);
    }
    if (others) {
        has_others = 1u;
    }
}

// --- the group's cells ---

int cells_of(Slab held)
{
    return (held.last - held.first) * held.rows * size.y;
}

void clear(Slab held)
{
    int count = cells_of(held);
    for (int k = int(gl_LocalInvocationIndex); k < count; k += LR_EVENTS_GROUP) {
        cells[k] = 0;
    }
}

void add_sum(int voxel, int sum)
{
    if (sums_are_floats()) {
        ADD_FLOAT(sums[2 * voxel], times_power(float(sum), -cell_bits))
    } else {
        uvec2 words = cell_words(sum, cell_bits);
        ADD_WORDS(sums[2 * voxel], sums[2 * voxel + 1], words)
    }
}

// Slices of a slab have all rows, or it has but one slice.
void flush(Slab held)
{
    int count = cells_of(held), first = (held.first * size.z + held.row) * size.y;
    for (int k = int(gl_LocalInvocationIndex); k < count; k += LR_EVENTS_GROUP) {
        if (cells[k] != 0) {
            add_sum(first + k, cells[k]);
        }
    }
}

// Clears the cells and finds their unit; false: no line has anything for them.
bool open_cells(uint first, uint last, Slab held)
{
    if (gl_LocalInvocationIndex == 0u) {
        all_sizes = 0u;
        has_others = 0u;
    }
    barrier();
    find_sizes(first, last, held);
    clear(held);
    barrier();
    if (gl_LocalInvocationIndex == 0u) {
        cell_bits = bits_of_cells(max(all_sizes, 1u));
    }
    barrier();
    return all_sizes > 0u || has_others > 0u;
}

void main()
{
    Slab held = slab_of(int(gl_WorkGroupID.y));
    uint first = gl_WorkGroupID.x * uint(slab.w), last = min(first + uint(slab.w), uint(size.w));
    bool has_lines = open_cells(first, last, held);
    has_small_terms = terms_are_small(cell_bits);
    if (has_lines) {
        for (uint k = first + gl_LocalInvocationIndex; k < last; k += LR_EVENTS_GROUP) {
            add_line(k, held);
        }
    }
    barrier();
    flush(held);
}
