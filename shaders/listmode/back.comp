#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Back-projects events into the image. A group adds many lines to a slab of slices, or to a band of rows of one slice,
// in shared memory (Cui et al. 2011, II.B.6), and then adds its sums to the image's sums. The sums of a group are
// words of 32 bits, for lines whose values are of the usual size. If a word overflows, the lost 2^32 units are added to
// the image's sum at once. Lines with other values are added to the image's sums directly.
//
// reads: lines with their values; their scale
// writes: sums of the image, slice by slice
// shape: groups: lines, slabs
// invariant: sums are integers with the same bits in every run, except if sums_are_floats
// variants: TOF=1; LINE=1; LINE=1 TOF=1; TABLE=1; AS_PAPER=1; AS_PAPER=1 TOF=1; KEPT=1; KEPT=1 TOF=1; KEPT=1 LINE=1; KEPT=1 ADD_ZEROS=1; KEPT=1 LINE=1 ADD_ZEROS=1; TOF=1 BINS=1; AS_PAPER=1 TOF=1 BINS=1
#include "common/atomic64.glsl"
#define LINES_ACCESS readonly
#include "listmode/kernel.glsl"
#include "listmode/sums.glsl"

#ifdef KEPT
#include "listmode/job.glsl"

layout(std430, binding = LR_BIND_LIST_LINE_VALUES) readonly buffer LineValues
{
    float line_values[];
};

// Another pass adds the lines with values of unusual size: listmode/listed.comp.
#define ARE_LISTED true
#define FRAME_BEGIN frame_begin
#else
#define ARE_LISTED false
#define FRAME_BEGIN 0
#endif

#ifndef GROUP
#define GROUP LR_EVENTS_GROUP
#endif
layout(local_size_x = GROUP) in;

// Spare words before and after the cells, for terms outside the slab or the image.
#define BEFORE 4
#define SPARE 32

shared int cells[BEFORE + CELLS + SPARE + 4];
shared int shared_bits;
shared uint all_sizes, has_others; // all_sizes: sum of the sizes of usual values; has_others: 1 if there are other
                                   // values

int cell_bits; // the value 1 is stored as 2^cell_bits in a cell

// The part of the image that the group has in its cells.
struct Slab {
    int first, last; // slices
    int row, rows;
};

#ifndef KEPT
Slab slab_of(int number)
{
    int first = window.x + number / slab.z * slab.x, row = number % slab.z * slab.y;
    return Slab(first, min(first + slab.x, window.y), row, min(slab.y, size.z - row));
}
#endif

// One slice of a line, in the form in which it is added to the group's cells.
struct Slice {
    Box box;
    float factor; // factor of the shares, which includes the line's value
    int row;      // row of the box's lowest voxel, relative to the slab's lowest row
    int cell;     // cell of this voxel, which may be outside the slab
};

// --- to the group's cells ---

// Returns 0.5 with the sign of a line's terms. If this number is added to a term, truncation gives the nearest integer.
// The addition takes no time, because it is fused with the term's multiplication.
float half_of(float factor)
{
    return factor < 0.0 ? -0.5 : 0.5;
}

int first_voxel; // number of the image's voxel that belongs to the group's first cell

// If adding `whole` made a cell overflow, adds the lost 2^32 units to the image's sum.
void carry(int cell, int old, int whole)
{
    int sum = old + whole;
    if (((old ^ sum) & (whole ^ sum)) >= 0 || cell >= CELLS) return;
    if (sums_are_floats()) {
        add_float_to_sums(first_voxel + cell, times_power(whole > 0 ? 1.0 : -1.0, 32 - cell_bits));
    } else {
        uvec2 words = carry_words(whole > 0, cell_bits);
        ADD_TO_WORDS(first_voxel + cell, words)
    }
}

void add_to_cell(int cell, bool is_held, int whole)
{
    if (is_held && whole != 0) carry(cell, atomicAdd(cells[BEFORE + cell], whole), whole);
}

// ADD_ZEROS: terms are added without branches. Terms of rows outside the slab are added to spare words. Terms of
// columns outside the image are 0, so any word can take them.
#ifdef ADD_ZEROS
int add_to_row(int cell, bool is_row, int whole)
{
    return atomicAdd(cells[BEFORE + cell], whole);
}

int cell_of_row(int cell, bool is_row)
{
    return is_row ? cell : CELLS + int(gl_LocalInvocationIndex % SPARE);
}
#else
int add_to_row(int cell, bool is_row, int whole)
{
    return is_row && whole != 0 ? atomicAdd(cells[BEFORE + cell], whole) : 0;
}

int cell_of_row(int cell, bool is_row)
{
    return cell;
}
#endif

// Four terms, the cells to which they were added, and the old values of these cells.
struct Added {
    ivec4 cell, old, whole;
};

const Added nothing = Added(ivec4(0), ivec4(0), ivec4(0));

// Adds four terms in a row, so that the thread waits only once for the cells' old values.
Added add_four(ivec4 cell, bvec4 is_row, ivec4 whole)
{
    ivec4 old;
    old.x = add_to_row(cell.x, is_row.x, whole.x);
    old.y = add_to_row(cell.y, is_row.y, whole.y);
    old.z = add_to_row(cell.z, is_row.z, whole.z);
    old.w = add_to_row(cell.w, is_row.w, whole.w);
    return Added(cell, old, whole);
}

// Adds the first four voxels of row v of a slice to the cells.
Added add_row(Slice slice, Slab held, int v, vec4 terms)
{
    bool is_row = is_within(slice.row + v, held.rows);
    int cell = cell_of_row(slice.cell + v * size.y, is_row);
    return add_four(cell + ivec4(0, 1, 2, 3), bvec4(is_row), ivec4(terms));
}

// Returns a negative number if the sign of a sum changed. Only then may a sum have overflowed.
int changed(Added a)
{
    ivec4 signs = a.old ^ (a.old + a.whole);
    return signs.x | signs.y | signs.z | signs.w;
}

#ifdef LINE
// Adds to the image what four terms lost by overflows.
void carry_four(Added a)
{
    while (changed(a) < 0) {
        carry(a.cell.x, a.old.x, a.whole.x);
        a = Added(a.cell.yzwx, a.old.yzwx, ivec4(a.whole.yzw, 0));
    }
}
#else
// Adds to the image what four rows of terms lost by overflows. There is a single loop for all rows, because software
// renderers run the body of each loop at least once.
void carry_rows(Added a, Added b, Added c, Added d)
{
    while ((changed(a) | changed(b) | changed(c) | changed(d)) < 0) {
        carry(a.cell.x, a.old.x, a.whole.x);
        Added rest = Added(a.cell.yzwx, a.old.yzwx, ivec4(a.whole.yzw, 0));
        a = b;
        b = c;
        c = d;
        d = rest;
    }
}
#endif

// The factor by which the shares of a slice are multiplied. sum: the sum of these shares.
float factor_of(float factor, float sum)
{
#if NORMALISED
    return sum > 0.0 ? factor / sum : 0.0;
#else
    return factor;
#endif
}

// Factors of the first four columns of a box.
vec4 factors_of(Box box, float factor)
{
    return mix(vec4(0.0), vec4(factor), columns_of(box));
}

#ifdef LINE
// Adds a thin line to its four voxels.
void add_narrow(Kernel kernel, Slice slice, Slab held)
{
    vec4 shares = thin_shares(slice.box);
    vec2 factors = factors_of(slice.box, slice.factor).xy;
    bvec2 is_row = bvec2(is_within(slice.row, held.rows), is_within(slice.row + 1, held.rows));
    ivec2 cell = ivec2(cell_of_row(slice.cell, is_row.x), cell_of_row(slice.cell + size.y, is_row.y));
    carry_four(
        add_four(cell.xxyy + ivec4(0, 1, 0, 1), is_row.xxyy, ivec4(factors.xyxy * shares + half_of(slice.factor))));
}

void add_wide(Kernel kernel, Slice slice, Slab held) {}
#else
// Each row has separate code, because compilers may keep an array of rows in slow memory.
void add_narrow(Kernel kernel, Slice slice, Slab held)
{
    vec4 a = four_shares(kernel, row_of(kernel, slice.box, 0));
    vec4 b = four_shares(kernel, row_of(kernel, slice.box, 1));
    vec4 c = four_shares(kernel, row_of(kernel, slice.box, 2));
    vec4 d = four_shares(kernel, row_of(kernel, slice.box, 3));
    vec4 factors = factors_of(slice.box, factor_of(slice.factor, sum_of(a + b + (c + d))));
    float more = half_of(slice.factor);
    carry_rows(add_row(slice, held, 0, factors * a + more), add_row(slice, held, 1, factors * b + more),
               add_row(slice, held, 2, factors * c + more), add_row(slice, held, 3, factors * d + more));
}

// Adds the fifth voxel of the first four rows of a slice.
Added add_fifth(Slice slice, Slab held, vec4 terms)
{
    bvec4 is_row = lessThan(uvec4(slice.row + ivec4(0, 1, 2, 3)), uvec4(uint(held.rows)));
    ivec4 cell = ivec4(cell_of_row(slice.cell, is_row.x), cell_of_row(slice.cell + size.y, is_row.y),
                       cell_of_row(slice.cell + 2 * size.y, is_row.z), cell_of_row(slice.cell + 3 * size.y, is_row.w));
    return add_four(cell + WIDE - 1, is_row, ivec4(terms));
}

void add_wide(Kernel kernel, Slice slice, Slab held)
{
    Row row_a = row_of(kernel, slice.box, 0), row_b = row_of(kernel, slice.box, 1);
    Row row_c = row_of(kernel, slice.box, 2), row_d = row_of(kernel, slice.box, 3);
    Row row_e = row_of(kernel, slice.box, 4);
    vec4 a = four_shares(kernel, row_a), b = four_shares(kernel, row_b);
    vec4 c = four_shares(kernel, row_c), d = four_shares(kernel, row_d);
    vec4 e = four_shares(kernel, row_e);
    vec4 last = vec4(share_of(kernel, row_a, 4), share_of(kernel, row_b, 4), share_of(kernel, row_c, 4),
                     share_of(kernel, row_d, 4));
    float corner = share_of(kernel, row_e, 4);
    float sum = sum_of(a + b + (c + d) + (e + last)) + corner;
    float factor = factor_of(slice.factor, sum);
    vec4 factors = factors_of(slice.box, factor);
    float last_factor = is_within(slice.box.low.x + WIDE - 1, size.y) ? factor : 0.0;
    float more = half_of(slice.factor);
    carry_rows(add_row(slice, held, 0, factors * a + more), add_row(slice, held, 1, factors * b + more),
               add_row(slice, held, 2, factors * c + more), add_row(slice, held, 3, factors * d + more));
    carry_rows(add_row(slice, held, 4, factors * e + more), add_fifth(slice, held, last_factor * last + more), nothing,
               nothing);
    add_to_cell(slice.cell + 4 * size.y + WIDE - 1, is_within(slice.row + 4, held.rows),
                int(last_factor * corner + more));
}
#endif

// --- slices of any size ---

// Adds a slice with a window of any size. to_cells: true = to the group's cells; false = to the image's sums.
void add_any(Kernel kernel, Slice slice, Slab held, bool to_cells)
{
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
            if (to_cells)
                add_to_cell(cell, is_held, int(term + half_of(term)));
            else if (is_held && share > 0.0)
                add_to_sums(first_voxel + cell, term);
        }
    }
}

// --- line by line ---

// The kind of code for a line's windows: NARROW, WIDE, or 0 for any size.
int window_of(Kernel kernel, bool to_cells)
{
    if (!to_cells) return 0;
#ifdef LINE
    return NARROW;
#else
    return fits(kernel, NARROW) ? NARROW : fits(kernel, WIDE) ? WIDE : 0;
#endif
}

void add_slice(Kernel kernel, Slice slice, Slab held, int window, bool to_cells)
{
    if (slice.row >= held.rows || slice.row + kernel.width.y <= 0 || slice.box.low.x >= size.y ||
        slice.box.low.x + kernel.width.x <= 0)
        return;
    if (window == NARROW)
        add_narrow(kernel, slice, held);
    else if (window == WIDE)
        add_wide(kernel, slice, held);
    else
        add_any(kernel, slice, held, to_cells);
}

float value_of(uint k, uvec4 way)
{
#ifdef KEPT
    return line_values[k];
#else
    return uintBitsToFloat(way.w);
#endif
}

// The slices of a line that are in the group's slab, counted from the line's first slice. way: part 2 of the line
// (listmode/lines.glsl).
ivec2 slices_of(uvec4 way, Slab held)
{
    return ivec2(max(held.first - int(way.x), 0), min(held.last - int(way.x), int(way.y)));
}

void add_line(uint k, Slab held)
{
    uvec4 way = lines[2u * uint(size.w) + k];
    ivec2 slices = slices_of(way, held);
    float value = value_of(k, way);
    bool is_for_cells = is_usual(value), to_cells = ARE_LISTED || is_for_cells;
    if (slices.x >= slices.y || (ARE_LISTED ? !is_for_cells : value == 0.0)) return;
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
        slice.cell = ((line.first + j - held.first) * held.rows + slice.row) * size.y + slice.box.low.x;
        add_slice(kernel, slice, held, window, to_cells);
        step_on(at, line.step);
    }
}

// Finds the sum of the sizes of the values of lines first .. last - 1.
void find_sizes(uint first, uint last, Slab held)
{
    uint sizes = 0u;
    bool others = false;
    for (uint k = first + gl_LocalInvocationIndex; k < last; k += GROUP) {
        uvec4 way = lines[2u * uint(size.w) + k];
        ivec2 slices = slices_of(way, held);
        float value = value_of(k, way);
        if (slices.x < slices.y && is_usual(value))
            sizes += size_of_usual(value);
        else if (!ARE_LISTED && slices.x < slices.y && value != 0.0)
            others = true;
    }
    if (sizes > 0u) atomicAdd(all_sizes, sizes);
    if (others) has_others = 1u;
}

// --- the group's cells ---

int cells_of(Slab held)
{
    return (held.last - held.first) * held.rows * size.y;
}

void clear(Slab held)
{
    int count = cells_of(held);
    for (int k = int(gl_LocalInvocationIndex); k < count; k += GROUP) cells[BEFORE + k] = 0;
}

void add_float(int voxel, int sum)
{
    if (sum != 0) add_float_to_sums(voxel, times_power(float(sum), -cell_bits));
}

#ifdef LR_HAS_ATOMIC64
void add_whole(int voxel, uvec2 words)
{
    if (words != uvec2(0u)) ADD_TO_WORDS(voxel, words)
}
#else
void add_high(int word, uint high)
{
    if (high != 0u) atomicAdd(sums[word], high);
}
#endif

// Adds to four sums at once. The device then waits only once for the previous low words, which the atomic additions
// return.
void add_sums(int voxel, ivec4 four)
{
    if (sums_are_floats()) {
        add_float(voxel, four.x);
        add_float(voxel + GROUP, four.y);
        add_float(voxel + 2 * GROUP, four.z);
        add_float(voxel + 3 * GROUP, four.w);
        return;
    }
    uvec2 a = cell_words(four.x, cell_bits), b = cell_words(four.y, cell_bits);
    uvec2 c = cell_words(four.z, cell_bits), d = cell_words(four.w, cell_bits);
#ifdef LR_HAS_ATOMIC64
    add_whole(voxel, a);
    add_whole(voxel + GROUP, b);
    add_whole(voxel + 2 * GROUP, c);
    add_whole(voxel + 3 * GROUP, d);
#else
    uvec4 low = uvec4(a.x, b.x, c.x, d.x), high = uvec4(a.y, b.y, c.y, d.y), old = uvec4(0u);
    int at = 2 * voxel;
    old.x = low.x != 0u ? atomicAdd(sums[at], low.x) : 0u;
    old.y = low.y != 0u ? atomicAdd(sums[at + 2 * GROUP], low.y) : 0u;
    old.z = low.z != 0u ? atomicAdd(sums[at + 4 * GROUP], low.z) : 0u;
    old.w = low.w != 0u ? atomicAdd(sums[at + 6 * GROUP], low.w) : 0u;
    high += uvec4(lessThan(old + low, old));
    add_high(at + 1, high.x);
    add_high(at + 1 + 2 * GROUP, high.y);
    add_high(at + 1 + 4 * GROUP, high.z);
    add_high(at + 1 + 6 * GROUP, high.w);
#endif
}

int cell_at(int k, int count)
{
    return k < count ? cells[BEFORE + k] : 0;
}

// Adds the cells to the image's sums. A slab has all rows, unless it has only one slice.
void flush(Slab held)
{
    int count = cells_of(held);
    for (int k = int(gl_LocalInvocationIndex); k < count; k += 4 * GROUP) {
        ivec4 four = ivec4(cell_at(k, count), cell_at(k + GROUP, count), cell_at(k + 2 * GROUP, count),
                           cell_at(k + 3 * GROUP, count));
        if (four != ivec4(0)) add_sums(first_voxel + k, four);
    }
}

// Clears the cells and chooses the unit of their whole-number sums. Returns false if no line adds to them.
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
    if (gl_LocalInvocationIndex == 0u) shared_bits = bits_of_cells(max(all_sizes, 1u), held.rows * size.y);
    barrier();
    cell_bits = shared_bits;
    return all_sizes > 0u || has_others > 0u;
}

// Adds lines first .. last - 1 to the slab.
void project(uint first, uint last, Slab held)
{
    bool has_lines = open_cells(first, last, held);
    first_voxel = FRAME_BEGIN + (held.first * size.z + held.row) * size.y;
    if (has_lines)
        for (uint k = first + gl_LocalInvocationIndex; k < last; k += GROUP) add_line(k, held);
    barrier();
    flush(held);
}

void main()
{
#ifdef KEPT
    Job job;
    if (next_job(job)) {
        read_scale();
        project(uint(job.lines.x), uint(job.lines.x + job.lines.y), Slab(job.slices.x, job.slices.y, 0, size.z));
    }
#else
    read_scale();
    uint first = gl_WorkGroupID.x * uint(slab.w);
    project(first, min(first + uint(slab.w), uint(size.w)), slab_of(int(gl_WorkGroupID.y)));
#endif
}
