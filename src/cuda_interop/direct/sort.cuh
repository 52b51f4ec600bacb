/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sorting the source of gathers by bands, for one thread. Numbers are ordered along the rows of a lattice, octet by
 * octet (eight neighbouring places). Each number is scaled by the largest number of its row, and split into a high and
 * a low part. A block sorts one row. Its threads are divided into groups. Group g takes the octets g, g + groups, g + 2
 * groups and so on. The threads of a group have neighbouring slices: the loads of a warp are along columns of the
 * grid, and its stores are next to each other. A thread keeps its first pieces until the largest number is known,
 * and loads its other pieces again. The caller provides the functions of bands.cuh, and one for numbers that are
 * read once:
 *   float load_once(const float *) */
#pragma once

#include "cuda_interop/direct/bands.cuh"

/* A piece is one slice of an octet. */
struct sorted_piece {
    int octet, slice;
};

/* Division of a row among the threads of a block. */
struct sort_threads {
    int slices, groups;
};

/* A thread's share of a row. Its first pieces, at most Kept, stay in registers. */
template <int Kept> struct row_sorter {
    int row;
    int first_place, end_place; /* first place with a column of the grid, and one after the last; counted from place 0
                                   of the first octet */
    int octets;                 /* octets to write */
    int64_t origin;             /* index in the source of slice 0 at place 0, which may be outside the grid */
    int step;                   /* distance in the source from one place to the next */
    sort_threads threads;
    int slices;         /* slices of the grid; there are no pieces beyond them */
    sorted_piece first; /* the thread's first piece */
    float numbers[Kept][LR_CUDA_OCTET];

    __device__ void start(const lr_cuda_bands &pass, const lr_cuda_band_source &sorted, int own_row, sort_threads of,
                          int thread)
    {
        const lr_cuda_layout &layout = pass.layout;
        const int4 base = pass.bases[own_row];
        const int l = base.x * LR_CUDA_OCTET, r = pass.least_row + own_row;
        const int x = l * pass.next[0] + r * pass.across[0], y = l * pass.next[1] + r * pass.across[1];
        const int column = x + layout.margin[1] + layout.extent[1] * (y + layout.margin[2]);
        row = own_row;
        first_place = base.z;
        end_place = base.w;
        octets = sorted.is_clear ? base.y - base.x : pass.pitch / LR_CUDA_OCTET;
        origin = 4 * (layout.margin[0] + (int64_t)layout.extent[0] * column);
        step = 4 * layout.extent[0] * (pass.next[0] + layout.extent[1] * pass.next[1]);
        threads = of;
        slices = layout.size[2];
        first = {thread / of.slices, thread % of.slices};
        if (first.octet >= min(of.groups, octets)) first.slice = slices; /* nothing to do */
    }

    __device__ sorted_piece after(sorted_piece piece) const
    {
        const int octet = piece.octet + threads.groups;
        return octet < octets ? sorted_piece{octet, piece.slice}
                              : sorted_piece{first.octet, piece.slice + threads.slices};
    }

    /* Numbers outside the grid are zero. */
    __device__ void load_piece(const float *source, sorted_piece piece, float (&loaded)[LR_CUDA_OCTET]) const
    {
        const int place = piece.octet * LR_CUDA_OCTET;
        const int begin = max(first_place - place, 0), end = min(end_place - place, (int)LR_CUDA_OCTET);
        const unsigned is_there = begin < end ? (0xffu >> (LR_CUDA_OCTET - end)) & (0xffu << begin) : 0;
        const float *from = source + (origin + (int64_t)step * place + piece.slice);
#pragma unroll
        for (int k = 0; k < LR_CUDA_OCTET; k++, from += step)
            loaded[k] = (is_there >> k & 1) != 0 ? load_once(from) : 0;
    }

    __device__ static float largest_of(const float (&of)[LR_CUDA_OCTET])
    {
        float largest = 0;
#pragma unroll
        for (int k = 0; k < LR_CUDA_OCTET; k++) largest = fmaxf(largest, fabsf(of[k]));
        return largest;
    }

    /* Loads the thread's numbers. Returns their largest magnitude, infinity included. */
    __device__ float load(const float *source)
    {
        sorted_piece piece = first;
        float largest = 0;
#pragma unroll
        for (int n = 0; n < Kept; n++, piece = after(piece))
            if (piece.slice < slices) load_piece(source, piece, numbers[n]);
        for (; piece.slice < slices; piece = after(piece)) {
            float others[LR_CUDA_OCTET];
            load_piece(source, piece, others);
            largest = fmaxf(largest, largest_of(others));
        }
        piece = first;
#pragma unroll
        for (int n = 0; n < Kept; n++, piece = after(piece))
            largest = fmaxf(largest, piece.slice < slices ? largest_of(numbers[n]) : 0);
        return largest;
    }

    /* Returns the largest finite magnitude. Infinite numbers are skipped, because scaling by them would round all
     * other numbers to 0. */
    __device__ float look_again(const float *source) const
    {
        float largest = 0;
        for (sorted_piece piece = first; piece.slice < slices; piece = after(piece)) {
            float again[LR_CUDA_OCTET];
            load_piece(source, piece, again);
            for (int k = 0; k < LR_CUDA_OCTET; k++) {
                const float magnitude = fabsf(again[k]);
                largest = fmaxf(largest, magnitude < INFINITY ? magnitude : 0);
            }
        }
        return largest;
    }

    __device__ void store_piece(const lr_cuda_bands &pass, const lr_cuda_band_source &sorted, sorted_piece piece,
                                float scale, float (&unscaled)[LR_CUDA_OCTET]) const
    {
        const int64_t octet = (int64_t)row * (pass.pitch / LR_CUDA_OCTET) + piece.octet;
        uint16_t *to = sorted.numbers + octet * sorted_octet(slices) + piece.slice * LR_CUDA_OCTET;
        split_pair pairs[LR_CUDA_OCTET / 2];
#pragma unroll
        for (int k = 0; k < LR_CUDA_OCTET / 2; k++)
            pairs[k] = split(unscaled[2 * k] * scale, unscaled[2 * k + 1] * scale);
        *reinterpret_cast<int4 *>(to) =
            int4{(int)pairs[0].high, (int)pairs[1].high, (int)pairs[2].high, (int)pairs[3].high};
        *reinterpret_cast<int4 *>(to + slices * LR_CUDA_OCTET) =
            int4{(int)pairs[0].low, (int)pairs[1].low, (int)pairs[2].low, (int)pairs[3].low};
    }

    /* peak: the row's largest number. */
    __device__ void store(const lr_cuda_bands &pass, const float *source, const lr_cuda_band_source &sorted, float peak)
    {
        const float scale = scale_for(peak);
        sorted_piece piece = first;
#pragma unroll
        for (int n = 0; n < Kept; n++, piece = after(piece))
            if (piece.slice < slices) store_piece(pass, sorted, piece, scale, numbers[n]);
        for (; piece.slice < slices; piece = after(piece)) {
            float others[LR_CUDA_OCTET];
            load_piece(source, piece, others);
            store_piece(pass, sorted, piece, scale, others);
        }
    }
};
