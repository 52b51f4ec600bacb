/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The gather by strips for one thread. A block goes along the line of response: sources come slab by
 * slab into shared memory, with the steps that are to be made of them, while its warps work on those
 * that are there. A thread has four columns of outputs, one behind the other, and up to 24 slices of
 * each; the lanes of a warp lie side by side across the strip, and twice along the slices. Warps lie
 * side by side and see the same slabs, or share their outputs: each has every second or fourth slab
 * then, and sums are added at last. Every index of a local array is a constant, so that the compiler
 * keeps it in registers. How copies are made comes as a type with
 *   void expect(bytes), which all copies of a slab follow,
 *   void slab(target, z, x, y): the box of a slab; what lies outside the grid is zero
 *   void steps(target, first): the box of steps from there on; what lies beyond the last is zero */
#ifndef LR_CUDA_DIRECT_STRIPS_CUH
#define LR_CUDA_DIRECT_STRIPS_CUH

#include "cuda_interop/direct/kernels.cuh"

/* Whose kernel: there is one for all voxels; the target's; the source's. */
enum strip_kernels { STRIP_ONE, STRIP_BACK, STRIP_FORWARD };

enum { LR_CUDA_STRIP_LANES = LR_CUDA_STRIP_ROWS * LR_CUDA_STRIP_PIECES };

/* lr_cuda_strip_step, by four numbers. */
struct strip_step {
    int4 place; /* source, after, shift, pairs */
    int4 profiles;
    float4 weights[4];
};

/* A block's share of the work, and its shared memory. The n-th slab of a split, and what belongs to
 * it, is in slot split depth + n % depth. */
struct strip_block {
    int column, row;     /* of the lattice: the first along the strip, and across */
    int slice;           /* the first */
    uint64_t *barriers;  /* [slots]: slabs that are there; [slots]: that are free; [1]: all steps */
    float4 *columns;     /* [slots][slab_quads], of these [width][pitch]; at last, sums */
    strip_step *steps;   /* [slots][room_steps], or all: [room_steps] */
    lr_cuda_slab *slabs; /* [num_slabs]: as the pass's */
};

template <int Slices> struct strip_thread {
    int lane, side, split;
    int row_in_block, piece;
    bool is_needed;           /* a thread of the warp has outputs in the grid */
    int first_row;            /* where that of output 0 is in the pass's rows */
    int row[LR_CUDA_OUTPUTS]; /* of mSRval, for the way back */
    float sums[LR_CUDA_OUTPUTS][Slices];
};

/* A slab that a thread goes to. */
struct strip_slab {
    int number, slot;
    int first, count; /* its steps, in the block's memory */
    int row;          /* of the first step's source, for the way forward */
};

__device__ inline int num_slots(const lr_cuda_strips &pass)
{
    return pass.splits * pass.depth;
}

/* Where the lists of a block lie in its shared memory. */
__device__ inline strip_block strip_block_at(const lr_cuda_strips &pass, int2 tile, int slice,
                                             float4 *shared)
{
    const int slots = num_slots(pass);
    strip_block block = {tile.x, tile.y, slice, nullptr, nullptr, nullptr, nullptr};
    block.barriers = reinterpret_cast<uint64_t *>(shared);
    block.columns = shared + LR_CUDA_STRIP_BARRIERS / sizeof(float4);
    block.steps = reinterpret_cast<strip_step *>(block.columns + slots * pass.slab_quads);
    block.slabs = reinterpret_cast<lr_cuda_slab *>(block.steps + (pass.holds_steps ? 1 : slots) *
                                                                     pass.room_steps);
    return block;
}

/* Rows that a strip has drifted by. */
__device__ inline int drift(const lr_cuda_strips &pass, int l)
{
    return (pass.slope * l) >> 16;
}

/* --- slabs --- */

/* A thread's share of the list of slabs. */
__device__ inline void load_slabs(const lr_cuda_strips &pass, const strip_block &block, int thread,
                                  int num_threads)
{
    const int4 *slabs = reinterpret_cast<const int4 *>(pass.slabs);
    for (int k = thread; k < pass.num_slabs; k += num_threads) {
        reinterpret_cast<int4 *>(block.slabs)[k] = __ldg(slabs + k);
    }
}

__device__ inline int step_bytes(const lr_cuda_strips &pass)
{
    return pass.room_steps * (int)sizeof(strip_step);
}

/* Begins the copies of as many steps as there is room for. For one thread. */
template <class Copies>
__device__ inline void copy_steps(const lr_cuda_strips &pass, strip_step *target, int first,
                                  Copies &copies)
{
    for (int k = 0; k < pass.room_steps; k += pass.box_steps) {
        copies.steps(target + k, first + k);
    }
}

/* Begins the copies of all steps. For one thread. */
template <class Copies>
__device__ inline void stage_steps(const lr_cuda_strips &pass, const strip_block &block,
                                   Copies &copies)
{
    copies.expect(step_bytes(pass));
    copy_steps(pass, block.steps, 0, copies);
}

/* Slab c's first row. l: its place along the strip. */
__device__ inline int slab_row(const lr_cuda_strips &pass, const strip_block &block, int l)
{
    return block.row + drift(pass, l) - pass.lead;
}

/* Slab c, the same in all lanes of a warp. */
__device__ inline lr_cuda_slab slab_at(const strip_block &block, int c)
{
    const int4 slab = reinterpret_cast<const int4 *>(block.slabs)[c];
    return {same_in_warp(slab.x), same_in_warp(slab.y), same_in_warp(slab.z), slab.w};
}

/* Begins the copies of slab c. For one thread. */
template <class Copies>
__device__ inline void stage_slab(const lr_cuda_strips &pass, const strip_block &block, int c,
                                  int slot, const lr_cuda_slab &slab, Copies &copies)
{
    const int l = block.column + pass.least + c, r = slab_row(pass, block, l);
    copies.expect(pass.width * pass.pitch * (int)sizeof(float4) +
                  (pass.holds_steps ? 0 : step_bytes(pass)));
    copies.slab(block.columns + slot * pass.slab_quads, block.slice + slab.low,
                l * pass.next[0] + r * pass.across[0], l * pass.next[1] + r * pass.across[1]);
    if (!pass.holds_steps) {
        copy_steps(pass, block.steps + slot * pass.room_steps, slab.first, copies);
    }
}

/* Row of mSRval of a thread's source: so many entries behind output 0's. */
template <strip_kernels Kernels, int Slices>
__device__ inline int source_row(const lr_cuda_strips &pass, const strip_thread<Slices> &thread,
                                 int behind)
{
    return Kernels == STRIP_FORWARD ? __ldg(pass.rows + (thread.first_row + behind)) : 0;
}

/* What there is of slab c before its copies: the row is under way while they are awaited. */
template <strip_kernels Kernels, int Slices>
__device__ inline strip_slab open_slab(const lr_cuda_strips &pass, const strip_block &block, int c,
                                       int slot, const strip_thread<Slices> &thread)
{
    const lr_cuda_slab slab = slab_at(block, c);
    return {c, slot, pass.holds_steps ? slab.first : slot * pass.room_steps, slab.count,
            source_row<Kernels>(pass, thread, slab.row)};
}

/* --- steps --- */

/* Slices from the window's first that the first tap of a step takes: 0 to 3, and up to four taps. */
enum { LR_CUDA_STRIP_PLACES = 7 };

/* A tap of a step, at a place in the window, for two outputs. A multiply-add takes a cycle more where
 * two numbers that it has to fetch lie in registers that are both even or both odd. One that the
 * multiply-add before had in the same place need not be fetched, so the outputs take turns, the other
 * one first each time. */
template <int Place, int Slices, int Window>
__device__ inline void add_pair(float first, float second, const float (&window)[Window],
                                float (&sums)[Slices], float (&more_sums)[Slices])
{
#pragma unroll
    for (int z = 0; z < Slices; z++) {
        if ((Place + z) % 2 == 0) {
            add_in_turn(sums[z], first, window[Place + z]);
            add_in_turn(more_sums[z], second, window[Place + z]);
        } else {
            add_in_turn(more_sums[z], second, window[Place + z]);
            add_in_turn(sums[z], first, window[Place + z]);
        }
    }
}

/* A tap of a step, at a place in the window. pairs: bits 0 and 1, of the outputs that have it. */
template <strip_kernels Kernels, int Place, int Slices, int Window>
__device__ inline void add_tap(float4 tap, int pairs, const float (&window)[Window],
                               const float (&factors)[LR_CUDA_OUTPUTS],
                               strip_thread<Slices> &thread)
{
    if (Kernels != STRIP_ONE) {
        tap.x *= factors[0];
        tap.y *= factors[1];
        tap.z *= factors[2];
        tap.w *= factors[3];
    }
    if ((pairs & 1) != 0) {
        add_pair<Place>(tap.x, tap.y, window, thread.sums[0], thread.sums[1]);
    }
    if ((pairs & 2) != 0) {
        add_pair<Place>(tap.z, tap.w, window, thread.sums[2], thread.sums[3]);
    }
}

/* All taps of a step. Each falls through to the next place, but for the last: so steps of all kinds
 * share their instructions, few enough for a multiprocessor to hold. */
template <strip_kernels Kernels, int Slices>
__device__ inline void gather_step(const strip_step &step, const float4 *source,
                                   const float (&factors)[LR_CUDA_OUTPUTS],
                                   strip_thread<Slices> &thread)
{
    constexpr int quads = (Slices + LR_CUDA_STRIP_PLACES - 1 + 3) / 4;
    const int4 place = step.place;
    const float4 *weights = step.weights;
    float4 tap, next = *weights;
    int pairs = same_in_warp(place.w);
    float window[4 * quads];
    source += place.x;
#pragma unroll
    for (int q = 0; q < quads; q++) {
        const float4 texel = source[q];
        window[4 * q] = texel.x;
        window[4 * q + 1] = texel.y;
        window[4 * q + 2] = texel.z;
        window[4 * q + 3] = texel.w;
    }
    switch (same_in_warp(place.z)) {
#define LR_STRIP_PLACE(at)                                                                         \
    tap = next;                                                                                    \
    next = *++weights; /* under way during this tap */                                             \
    add_tap<Kernels, at>(tap, pairs, window, factors, thread);                                     \
    pairs >>= 2;                                                                                   \
    if (pairs == 0) {                                                                              \
        break;                                                                                     \
    }
    case 0:
        LR_STRIP_PLACE(0)
        [[fallthrough]];
    case 1:
        LR_STRIP_PLACE(1)
        [[fallthrough]];
    case 2:
        LR_STRIP_PLACE(2)
        [[fallthrough]];
    default:
        LR_STRIP_PLACE(3)
        LR_STRIP_PLACE(4)
        LR_STRIP_PLACE(5)
        LR_STRIP_PLACE(6)
#undef LR_STRIP_PLACE
    }
}

/* What is under way while a thread works on a step: the factors of the next one for its outputs,
 * and the row of the source of the one after that. */
struct strip_ahead {
    float factors[LR_CUDA_OUTPUTS];
    int row;
};

/* Looks ahead to a step, whose row has come. */
template <strip_kernels Kernels, int Slices>
__device__ inline void look_ahead(const lr_cuda_strips &pass, const strip_step &step,
                                  const strip_thread<Slices> &thread, strip_ahead &ahead)
{
    const int4 profiles = step.profiles;
    const int after = step.place.y;
    const int at[LR_CUDA_OUTPUTS] = {profiles.x, profiles.y, profiles.z, profiles.w};
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        const int row = Kernels == STRIP_FORWARD ? ahead.row : thread.row[j];
        ahead.factors[j] = __ldg(pass.profiles + (at[j] + row));
    }
    ahead.row = source_row<Kernels>(pass, thread, after);
}

/* All steps of a slab. */
template <strip_kernels Kernels, int Slices>
__device__ inline void gather_slab(const lr_cuda_strips &pass, const strip_block &block,
                                   const strip_slab &slab, strip_thread<Slices> &thread)
{
    const int l = block.column;
    const int row = thread.row_in_block + pass.lead + drift(pass, l) -
                    drift(pass, l + pass.least + slab.number);
    const float4 *own = block.columns + slab.slot * pass.slab_quads + row * pass.pitch +
                        thread.piece * (Slices / 4);
    const strip_step *step = block.steps + slab.first;
    const strip_step *const end = step + slab.count;
    strip_ahead ahead = {{0, 0, 0, 0}, slab.row};
    if (Kernels != STRIP_ONE && step != end) {
        look_ahead<Kernels>(pass, *step, thread, ahead);
    }
#pragma unroll 1
    for (; step != end; step++) {
        float factors[LR_CUDA_OUTPUTS];
#pragma unroll
        for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
            factors[j] = ahead.factors[j];
        }
        if (Kernels != STRIP_ONE && step + 1 != end) {
            look_ahead<Kernels>(pass, step[1], thread, ahead);
        }
        gather_step<Kernels>(*step, own, factors, thread);
    }
}

/* --- the thread's outputs --- */

/* Output j's column, or -1. */
template <int Slices>
__device__ inline int output_column(const lr_cuda_strips &pass, const strip_block &block,
                                    const strip_thread<Slices> &thread, int j)
{
    return column_at(pass, block.column + j,
                     block.row + drift(pass, block.column) + thread.row_in_block);
}

/* Where the row of mSRval of a column of the lattice is. */
__device__ inline int row_at(const lr_cuda_strips &pass, int l, int r)
{
    const int x = l * pass.next[0] + r * pass.across[0] + pass.layout.margin[1];
    const int y = l * pass.next[1] + r * pass.across[1] + pass.layout.margin[2];
    return x * pass.row_pitch[0] + y * pass.row_pitch[1];
}

/* Where a thread has an output in the grid, the margins have all its sources
 * (lr_cuda_column_margins). One that has none goes by the grid's first column: it stores
 * nothing. */
template <strip_kernels Kernels, int Slices>
__device__ inline void find_rows(const lr_cuda_strips &pass, const strip_block &block,
                                 bool has_output, strip_thread<Slices> &thread)
{
    const int l = block.column, r = block.row + drift(pass, l) + thread.row_in_block;
    const int next = row_at(pass, 1, 0) - row_at(pass, 0, 0);
    thread.first_row = has_output ? row_at(pass, l, r) : row_at(pass, 0, 0);
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        thread.row[j] =
            Kernels == STRIP_BACK ? __ldg(pass.rows + (thread.first_row + j * next)) : 0;
    }
}

/* number: of the thread in its block. */
template <strip_kernels Kernels, int Slices>
__device__ inline void begin_strip(const lr_cuda_strips &pass, const strip_block &block, int number,
                                   strip_thread<Slices> &thread)
{
    const int warp = same_in_warp(number / LR_CUDA_STRIP_LANES);
    bool has_output = false;
    thread.lane = number % LR_CUDA_STRIP_LANES;
    thread.split = warp / pass.sides;
    thread.side = warp - thread.split * pass.sides;
    thread.row_in_block = thread.side * LR_CUDA_STRIP_ROWS + thread.lane % LR_CUDA_STRIP_ROWS;
    thread.piece = thread.lane / LR_CUDA_STRIP_ROWS;
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        has_output = has_output || output_column(pass, block, thread, j) >= 0;
#pragma unroll
        for (int z = 0; z < Slices; z++) {
            thread.sums[j][z] = 0;
        }
    }
    thread.is_needed = any_lane(has_output);
    find_rows<Kernels>(pass, block, has_output, thread);
}

/* --- sums of warps that share their outputs --- */

/* The split that adds and stores output j. */
__device__ inline int owner_of(const lr_cuda_strips &pass, int j)
{
    return j * pass.splits / LR_CUDA_OUTPUTS;
}

/* A thread's sums of output j, where the block's columns were. */
template <int Slices>
__device__ inline float *parts_of(const lr_cuda_strips &pass, float *shared,
                                  const strip_thread<Slices> &thread, int split, int j)
{
    return shared +
           ((split * pass.sides + thread.side) * LR_CUDA_OUTPUTS + j) * Slices *
               LR_CUDA_STRIP_LANES +
           thread.lane;
}

template <int Slices>
__device__ inline void leave_sums(const lr_cuda_strips &pass, float *shared,
                                  const strip_thread<Slices> &thread)
{
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        if (owner_of(pass, j) == thread.split) {
            continue;
        }
        float *parts = parts_of(pass, shared, thread, thread.split, j);
#pragma unroll
        for (int z = 0; z < Slices; z++) {
            parts[z * LR_CUDA_STRIP_LANES] = thread.sums[j][z];
        }
    }
}

template <int Slices>
__device__ inline void add_sums(const lr_cuda_strips &pass, float *shared,
                                strip_thread<Slices> &thread)
{
    for (int split = 0; split < pass.splits; split++) {
#pragma unroll
        for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
            if (owner_of(pass, j) != thread.split || split == thread.split) {
                continue;
            }
            const float *parts = parts_of(pass, shared, thread, split, j);
#pragma unroll
            for (int z = 0; z < Slices; z++) {
                thread.sums[j][z] += parts[z * LR_CUDA_STRIP_LANES];
            }
        }
    }
}

template <int Slices>
__device__ inline void store_strip(const lr_cuda_strips &pass, const strip_block &block,
                                   const strip_thread<Slices> &thread, float4 *target)
{
    const lr_cuda_layout &layout = pass.layout;
    const int first = block.slice / 4 + thread.piece * (Slices / 4);
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        const int column = output_column(pass, block, thread, j);
        if (column < 0 || owner_of(pass, j) != thread.split) {
            continue;
        }
        float4 *quads = target + (int64_t)layout.extent[0] * column + layout.margin[0];
#pragma unroll
        for (int q = 0; q < Slices / 4; q++) {
            const float *sums = &thread.sums[j][4 * q];
            if (first + q < layout.quads) {
                quads[first + q] =
                    within_grid(layout, make_float4(sums[0], sums[1], sums[2], sums[3]), first + q);
            }
        }
    }
}

/* --- tables --- */

/* Weights of the taps of step thread / 4 for output thread % 4: values where there is one kernel for
 * all voxels, or else what time of flight and slice give, which profiles multiply. */
template <bool Forward>
__device__ inline void fill_strip_step(const lr_cuda_strips &pass, const lr_cuda_strip_fill &fill,
                                       int thread)
{
    const int number = thread / LR_CUDA_OUTPUTS, j = thread % LR_CUDA_OUTPUTS;
    if (number >= fill.num_steps) {
        return;
    }
    const int4 offsets = fill.offsets[thread];
    const int indices[4] = {offsets.x, offsets.y, offsets.z, offsets.w};
    float taps[4];
    int column = 0;
    for (int tap = 0; tap < 4; tap++) {
        const int offset = Forward ? fill.num_offsets - 1 - indices[tap] : indices[tap];
        taps[tap] = indices[tap] < 0     ? 0
                    : pass.num_rows == 1 ? fill.values[offset]
                                         : fill.factors[offset];
        column = indices[tap] < 0 ? column : fill.columns[offset];
    }
    for (int tap = 0; tap < 4; tap++) {
        fill.steps[number].weights[tap][j] = taps[tap];
    }
    fill.steps[number].profiles[j] = column * pass.num_rows;
}

/* The profile of column thread / rows of mSR, row thread % rows: from its largest value. */
__device__ inline void fill_strip_profile(const lr_cuda_strips &pass,
                                          const lr_cuda_strip_fill &fill, int64_t thread)
{
    const int row = (int)(thread % pass.num_rows);
    const int64_t column = thread / pass.num_rows;
    if (column >= fill.num_columns) {
        return;
    }
    const int offset = fill.peaks[column];
    const float factor = fill.factors[offset];
    /* zero: so far from the kernel's middle that its weights are */
    fill.profiles[thread] =
        factor > 0 ? fill.values[(int64_t)offset * pass.num_rows + row] / factor : 0;
}

/* The row of column `thread` of LORmap. Margins have some row, too: sources are zero there. */
__device__ inline void fill_strip_row(const lr_cuda_strips &pass, const lr_cuda_strip_fill &fill,
                                      int thread)
{
    const int *extent = pass.layout.extent;
    const int y = thread / extent[1], x = thread - y * extent[1];
    if (y < extent[2]) {
        fill.rows[x * pass.row_pitch[0] + y * pass.row_pitch[1]] =
            (uint16_t)row_of(pass.num_rows, fill.map[thread]);
    }
}

#endif
