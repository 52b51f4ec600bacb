/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The gather by columns (direct/lattice.h) for one thread: four neighbouring columns of outputs, twelve
 * slices of each. A source column's slices are read once, into registers, and serve all outputs and
 * all offsets along the column. Every index of a local array is a constant, so that the compiler
 * keeps it in registers. */
#ifndef LR_CUDA_DIRECT_COLUMNS_CUH
#define LR_CUDA_DIRECT_COLUMNS_CUH

#include "cuda_interop/direct/kernels.cuh"

/* What a thread goes through its steps with. */
struct columns_thread {
    const float4 *source; /* at the first output's first slice */
    const uint16_t *map;  /* at the first output */
    int row[LR_CUDA_OUTPUTS];
    float sums[LR_CUDA_OUTPUTS][LR_CUDA_SLICES];
};

/* Taps of one step for one output. */
template <int Taps>
__device__ inline void load_weights(const lr_cuda_columns &pass, const lr_cuda_column_step &step, int place,
                                    float (&taps)[4])
{
    const float4 *weights = pass.weights + step.weights;
    if (Taps == 1) {
        taps[0] = __ldg(reinterpret_cast<const float *>(weights) + place);
    } else {
        const float4 all = __ldg(weights + place);
        taps[0] = all.x;
        taps[1] = all.y;
        taps[2] = all.z;
        taps[3] = all.w;
    }
}

template <int Shift, int Taps, bool All>
__device__ inline void take_step(const lr_cuda_columns &pass, const lr_cuda_column_step &step, columns_thread &thread)
{
    constexpr int quads = (Shift + LR_CUDA_SLICES + Taps - 1 + 3) / 4;
    float window[4 * quads];
#pragma unroll
    for (int q = 0; q < quads; q++) {
        const float4 texel = __ldg(thread.source + step.source + q);
        window[4 * q] = texel.x;
        window[4 * q + 1] = texel.y;
        window[4 * q + 2] = texel.z;
        window[4 * q + 3] = texel.w;
    }
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        if (!All && (step.mask >> j & 1) == 0) continue;
        float taps[4];
        load_weights<Taps>(pass, step, j * pass.num_rows + thread.row[j], taps);
#pragma unroll
        for (int r = 0; r < Taps; r++) {
#pragma unroll
            for (int z = 0; z < LR_CUDA_SLICES; z++) thread.sums[j][z] += taps[r] * window[Shift + r + z];
        }
    }
}

template <bool Forward, int Shift, int Taps, bool All>
__device__ inline void take_class(const lr_cuda_columns &pass, columns_thread &thread)
{
    constexpr int number = 8 * (Taps == 1 ? 0 : Taps - 2) + 2 * Shift + All;
#pragma unroll 1
    for (int k = pass.first[number]; k < pass.first[number + 1]; k++) {
        const lr_cuda_column_step step = pass.steps[k];
        if (Forward) {
            const int row = row_of(pass.num_rows, __ldg(thread.map + step.map));
#pragma unroll
            for (int j = 0; j < LR_CUDA_OUTPUTS; j++) thread.row[j] = row;
        }
        take_step<Shift, Taps, All>(pass, step, thread);
    }
}

template <bool Forward, int Taps> __device__ inline void take_shape(const lr_cuda_columns &pass, columns_thread &thread)
{
    take_class<Forward, 0, Taps, false>(pass, thread);
    take_class<Forward, 0, Taps, true>(pass, thread);
    take_class<Forward, 1, Taps, false>(pass, thread);
    take_class<Forward, 1, Taps, true>(pass, thread);
    take_class<Forward, 2, Taps, false>(pass, thread);
    take_class<Forward, 2, Taps, true>(pass, thread);
    take_class<Forward, 3, Taps, false>(pass, thread);
    take_class<Forward, 3, Taps, true>(pass, thread);
}

/* The grid's columns among a thread's outputs, and the slices that the grid has. */
__device__ inline void store_sums(const lr_cuda_columns &pass, const columns_thread &thread, const int (&at)[3],
                                  float4 *target)
{
    const lr_cuda_layout &layout = pass.layout;
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        const int x = at[0] + j * pass.next[0], y = at[1] + j * pass.next[1];
        if (x < 0 || x >= layout.size[0] || y < 0 || y >= layout.size[1]) continue;
        float4 *column =
            target + layout.margin[0] +
            (int64_t)layout.extent[0] * (x + layout.margin[1] + (int64_t)layout.extent[1] * (y + layout.margin[2]));
#pragma unroll
        for (int q = 0; q < LR_CUDA_SLICES / 4; q++) {
            const int quad = at[2] / 4 + q;
            const float *sums = &thread.sums[j][4 * q];
            if (quad < layout.quads)
                column[quad] = within_grid(layout, make_float4(sums[0], sums[1], sums[2], sums[3]), quad);
        }
    }
}

/* The thread of outputs (p, q) of the lattice, counted from pass.least, and of slices from
 * `slice` on. source, target: whole images with margins. */
template <bool Forward>
__device__ inline void gather_columns(const lr_cuda_columns &pass, const int (&place)[3], const float4 *source,
                                      float4 *target)
{
    const lr_cuda_layout &layout = pass.layout;
    const int p = (pass.least[0] + place[0]) * LR_CUDA_OUTPUTS, q = pass.least[1] + place[1];
    const int at[3] = {p * pass.next[0] + q * pass.across[0], p * pass.next[1] + q * pass.across[1], place[2]};
    bool is_needed = false;
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        const int x = at[0] + j * pass.next[0], y = at[1] + j * pass.next[1];
        is_needed = is_needed || (x >= 0 && x < layout.size[0] && y >= 0 && y < layout.size[1]);
    }
    if (!is_needed) return;
    const int64_t column = at[0] + layout.margin[1] + (int64_t)layout.extent[1] * (at[1] + layout.margin[2]);
    columns_thread thread;
    thread.source = source + layout.margin[0] + layout.extent[0] * column + at[2] / 4;
    thread.map = pass.map + column;
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        thread.row[j] =
            Forward ? 0 : row_of(pass.num_rows, thread.map[j * pass.next[0] + j * pass.next[1] * layout.extent[1]]);
#pragma unroll
        for (int z = 0; z < LR_CUDA_SLICES; z++) thread.sums[j][z] = 0;
    }
    take_shape<Forward, 1>(pass, thread);
    take_shape<Forward, 3>(pass, thread);
    take_shape<Forward, 4>(pass, thread);
    store_sums(pass, thread, at, target);
}

/* Weights of one step, output and row: entry `thread` of [steps][outputs][rows]. indices: [steps]
 * [outputs][4], in mSR, -1 = none. */
template <bool Forward>
__device__ inline void fill_weights(const lr_cuda_columns &pass, const lr_cuda_gather &tables, const int32_t *indices,
                                    int64_t thread)
{
    const int rows = pass.num_rows;
    const int row = (int)(thread % rows);
    const int64_t output = thread / rows;
    const int step = (int)(output / LR_CUDA_OUTPUTS), j = (int)(output % LR_CUDA_OUTPUTS);
    if (step >= pass.first[LR_CUDA_CLASSES]) return;
    float taps[4];
    for (int r = 0; r < 4; r++) {
        const int index = indices[4 * output + r];
        const int offset = Forward ? tables.num_offsets - 1 - index : index;
        taps[r] = index < 0 ? 0 : tables.values[(int64_t)offset * rows + row];
    }
    float4 *weights = const_cast<float4 *>(pass.weights) + pass.steps[step].weights;
    if (step < pass.first[8]) /* of one tap */
        reinterpret_cast<float *>(weights)[j * rows + row] = taps[0];
    else
        weights[j * rows + row] = make_float4(taps[0], taps[1], taps[2], taps[3]);
}

#endif
