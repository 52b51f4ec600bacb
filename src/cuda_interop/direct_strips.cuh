/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The gather by strips for one thread. A block goes along the line of response: sources come slab by
 * slab into shared memory, the next one while the block works on the last, and are read once for
 * all the outputs of a block. A thread has four columns of outputs, one behind the other, and up
 * to 24 slices of each; the lanes of a warp lie side by side across the strip, and twice along the
 * slices. Every index of a local
 * array is a constant, so that the compiler keeps it in registers. */
#ifndef LR_CUDA_DIRECT_STRIPS_CUH
#define LR_CUDA_DIRECT_STRIPS_CUH

#include "cuda_interop/direct_kernels.cuh"

/* A block's share of the work, and its shared memory. */
struct strip_block {
    int group, row;  /* the first group of four along the strip, and row across */
    int slice;       /* the first */
    float4 *columns; /* [slots][width][pitch] */
    uint16_t *rows;  /* [slots][width]: of mSRval, for the way forward */
};

template <int Slices> struct strip_thread {
    int group, row_in_block, piece;
    bool is_needed; /* a thread of the warp has outputs in the grid */
    int row[LR_CUDA_OUTPUTS];
    float sums[LR_CUDA_OUTPUTS][Slices];
};

/* Rows that a strip has drifted by. */
__device__ inline int drift(const lr_cuda_strips &pass, int l)
{
    return (pass.slope * l) >> 16;
}

/* The column of a strip's row at a place along it: its place in images, or -1 outside the grid. */
__device__ inline int64_t column_at(const lr_cuda_strips &pass, int l, int r)
{
    const lr_cuda_layout &layout = pass.layout;
    const int x = l * pass.next[0] + r * pass.across[0];
    const int y = l * pass.next[1] + r * pass.across[1];
    return x >= 0 && x < layout.size[0] && y >= 0 && y < layout.size[1]
               ? x + layout.margin[1] + (int64_t)layout.extent[1] * (y + layout.margin[2])
               : -1;
}

/* --- slabs --- */

/* A thread's share of slab `number`, counted from the block's first on. What lies outside the grid is
 * zero. Copies go on until the block waits for them. */
template <bool Forward>
__device__ inline void stage_slab(const lr_cuda_strips &pass, const strip_block &block, int number,
                                  const float4 *source, int thread)
{
    const lr_cuda_layout &layout = pass.layout;
    const int l = LR_CUDA_OUTPUTS * block.group + pass.least + number;
    const int r = block.row + drift(pass, l) - pass.lead;
    const int slot = number % pass.slots * pass.width;
    const int quad = block.slice / 4 - pass.low;
    constexpr int threads = LR_CUDA_STRIP_WARPS * LR_CUDA_STRIP_ROWS * LR_CUDA_STRIP_PIECES;
    for (int k = thread; k < pass.width * pass.quads; k += threads) {
        const int number_in_slab = k / pass.quads, q = k - number_in_slab * pass.quads;
        const int64_t column = column_at(pass, l, r + number_in_slab);
        const bool is_there = column >= 0 && quad + q >= 0 && quad + q < layout.quads;
        copy_quad(block.columns + (int64_t)(slot + number_in_slab) * pass.pitch + q,
                  is_there ? source + layout.extent[0] * column + layout.margin[0] + quad + q
                           : source,
                  is_there);
    }
    for (int k = thread; Forward && k < pass.width; k += threads) {
        const int64_t column = column_at(pass, l, r + k);
        block.rows[slot + k] =
            column < 0 ? 0 : (uint16_t)row_of(pass.num_rows, __ldg(pass.map + column));
    }
}

/* --- steps --- */

/* A step's place, and its four entries. */
struct loaded_step {
    int4 place, entries;
};

__device__ inline loaded_step load_step(const lr_cuda_strips &pass, int number)
{
    const int4 *from = reinterpret_cast<const int4 *>(pass.steps + number);
    return {__ldg(from), __ldg(from + 1)};
}

/* Weights of a step for one output; nothing where it has none. */
template <int Taps>
__device__ inline void load_taps(const lr_cuda_strips &pass, int entry, int row, float (&taps)[4])
{
    if (entry < 0) {
        return;
    }
    const unsigned place = (unsigned)(entry + row);
    if (Taps == 1) {
        taps[0] = __ldg(pass.singles + place);
    } else {
        const float4 all = __ldg(pass.weights + place);
        taps[0] = all.x;
        taps[1] = all.y;
        taps[2] = all.z;
        taps[3] = all.w;
    }
}

/* All loads stand before the arithmetic, so that they are under way together. */
template <int Kind, int Slices>
__device__ inline void gather_step(const lr_cuda_strips &pass, const int4 &entries,
                                   const float4 *source, strip_thread<Slices> &thread)
{
    constexpr int shift = Kind % 4, num_taps = Kind / 4 + 1;
    constexpr int quads = (shift + Slices + num_taps - 1 + 3) / 4;
    const int entry[LR_CUDA_OUTPUTS] = {entries.x, entries.y, entries.z, entries.w};
    float taps[LR_CUDA_OUTPUTS][4], window[4 * quads];
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        load_taps<num_taps>(pass, entry[j], thread.row[j], taps[j]);
    }
#pragma unroll
    for (int q = 0; q < quads; q++) {
        const float4 texel = source[q];
        window[4 * q] = texel.x;
        window[4 * q + 1] = texel.y;
        window[4 * q + 2] = texel.z;
        window[4 * q + 3] = texel.w;
    }
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        if (entry[j] < 0) {
            continue;
        }
#pragma unroll
        for (int tap = 0; tap < num_taps; tap++) {
#pragma unroll
            for (int z = 0; z < Slices; z++) {
                thread.sums[j][z] += taps[j][tap] * window[shift + tap + z];
            }
        }
    }
}

template <int Slices>
__device__ inline void gather_kind(const lr_cuda_strips &pass, const loaded_step &step,
                                   const float4 *source, strip_thread<Slices> &thread)
{
    switch (step.place.z) {
#define LR_STRIP_KIND(kind)                                                                        \
    case kind:                                                                                     \
        gather_step<kind>(pass, step.entries, source, thread);                                     \
        break;
        LR_STRIP_KIND(0)
        LR_STRIP_KIND(1)
        LR_STRIP_KIND(2)
        LR_STRIP_KIND(3)
        LR_STRIP_KIND(4)
        LR_STRIP_KIND(5)
        LR_STRIP_KIND(6)
        LR_STRIP_KIND(7)
        LR_STRIP_KIND(8)
        LR_STRIP_KIND(9)
        LR_STRIP_KIND(10)
        LR_STRIP_KIND(11)
        LR_STRIP_KIND(12)
        LR_STRIP_KIND(13)
        LR_STRIP_KIND(14)
        LR_STRIP_KIND(15)
#undef LR_STRIP_KIND
    }
}

/* All steps of slab c of the thread's group. */
template <bool Forward, int Slices>
__device__ inline void gather_slab(const lr_cuda_strips &pass, const strip_block &block, int c,
                                   strip_thread<Slices> &thread)
{
    const int l = LR_CUDA_OUTPUTS * (block.group + thread.group);
    const int slot = (c + LR_CUDA_OUTPUTS * thread.group) % pass.slots * pass.width;
    const int column =
        slot + thread.row_in_block + pass.lead + drift(pass, l) - drift(pass, l + pass.least + c);
    const float4 *own =
        block.columns + column * pass.pitch + pass.low + thread.piece * (Slices / 4);
    const int begin = __ldg(pass.first + c), end = __ldg(pass.first + c + 1);
    loaded_step next = load_step(pass, begin);
#pragma unroll 1
    for (int k = begin; k < end; k++) {
        const loaded_step step = next;
        next = load_step(pass, k + 1); /* under way while this step is worked on */
        if (Forward) {
            const int row = block.rows[column + step.place.y];
#pragma unroll
            for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
                thread.row[j] = row;
            }
        }
        gather_kind(pass, step, own + step.place.x, thread);
    }
}

/* --- the thread's outputs --- */

/* Output j's column, or -1. */
template <int Slices>
__device__ inline int64_t output_column(const lr_cuda_strips &pass, const strip_block &block,
                                        const strip_thread<Slices> &thread, int j)
{
    const int l = LR_CUDA_OUTPUTS * (block.group + thread.group);
    return column_at(pass, l + j, block.row + drift(pass, l) + thread.row_in_block);
}

/* number: of the thread in its block. */
template <bool Forward, int Slices>
__device__ inline void begin_strip(const lr_cuda_strips &pass, const strip_block &block, int number,
                                   strip_thread<Slices> &thread)
{
    constexpr int lanes = LR_CUDA_STRIP_ROWS * LR_CUDA_STRIP_PIECES;
    const int warp = number / lanes, lane = number % lanes;
    bool is_needed = false;
    thread.group = warp % pass.groups;
    thread.row_in_block = warp / pass.groups * LR_CUDA_STRIP_ROWS + lane % LR_CUDA_STRIP_ROWS;
    thread.piece = lane / LR_CUDA_STRIP_ROWS;
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        const int64_t column = output_column(pass, block, thread, j);
        is_needed = is_needed || column >= 0;
        thread.row[j] = Forward || column < 0 ? 0 : row_of(pass.num_rows, __ldg(pass.map + column));
#pragma unroll
        for (int z = 0; z < Slices; z++) {
            thread.sums[j][z] = 0;
        }
    }
    thread.is_needed = any_lane(is_needed);
}

template <int Slices>
__device__ inline void store_strip(const lr_cuda_strips &pass, const strip_block &block,
                                   const strip_thread<Slices> &thread, float4 *target)
{
    const lr_cuda_layout &layout = pass.layout;
    const int first = block.slice / 4 + thread.piece * (Slices / 4);
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        const int64_t column = output_column(pass, block, thread, j);
        if (column < 0) {
            continue;
        }
        float4 *quads = target + layout.extent[0] * column + layout.margin[0];
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

/* --- weights --- */

/* Weights of entry thread / rows, row thread % rows. entries: lr_cuda_strip_plan. */
template <bool Forward>
__device__ inline void fill_strip_weights(const lr_cuda_strips &pass, const lr_cuda_gather &tables,
                                          const int4 *entries, int64_t thread)
{
    const int row = (int)(thread % pass.num_rows);
    const int64_t entry = thread / pass.num_rows;
    if (entry >= pass.num_entries + pass.num_singles) {
        return;
    }
    const int4 offsets = entries[entry];
    const int indices[4] = {offsets.x, offsets.y, offsets.z, offsets.w};
    float taps[4];
    for (int tap = 0; tap < 4; tap++) {
        const int offset = Forward ? tables.num_offsets - 1 - indices[tap] : indices[tap];
        taps[tap] = indices[tap] < 0 ? 0 : tables.values[(int64_t)offset * pass.num_rows + row];
    }
    if (entry < pass.num_entries) {
        const_cast<float4 *>(pass.weights)[entry * pass.num_rows + row] =
            make_float4(taps[0], taps[1], taps[2], taps[3]);
    } else {
        const_cast<float *>(pass.singles)[(entry - pass.num_entries) * pass.num_rows + row] =
            taps[0];
    }
}

#endif
