/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sorting the source of gathers by bands, for one thread: along the rows of a lattice, octet by octet,
 * each number as two halves that its row's largest number scales. A block has a row. Its threads lie side
 * by side along the slices, so that loads of a warp are along columns of the grid and its stores next to
 * each other, and in groups, which take octets in turn. A thread keeps the first pieces that it loads,
 * until the largest number is known, and loads others again. What is read once comes as a function
 *   float load_once(const float *)
 * beside those of bands.cuh. */
#ifndef LR_CUDA_DIRECT_SORT_CUH
#define LR_CUDA_DIRECT_SORT_CUH

#include "cuda_interop/direct/bands.cuh"

/* A row's columns, from the first place of its first octet on. */
struct row_to_sort {
    int row;
    int first, end; /* places that the grid has columns at */
    int octets;     /* that are to be written */
    int64_t origin; /* numbers from the source's first to slice 0 at place 0, maybe outside the grid; */
    int step;       /* and from place to place */
};

__device__ inline row_to_sort find_row(const lr_cuda_bands &pass, const lr_cuda_band_source &sorted, int row)
{
    const lr_cuda_layout &layout = pass.layout;
    const int4 base = pass.bases[row];
    const int l = base.x * LR_CUDA_OCTET, r = pass.least_row + row;
    const int x = l * pass.next[0] + r * pass.across[0], y = l * pass.next[1] + r * pass.across[1];
    const int column = x + layout.margin[1] + layout.extent[1] * (y + layout.margin[2]);
    return {row,
            base.z,
            base.w,
            sorted.is_clear ? base.y - base.x : pass.pitch / LR_CUDA_OCTET,
            4 * (layout.margin[0] + (int64_t)layout.extent[0] * column),
            4 * layout.extent[0] * (pass.next[0] + layout.extent[1] * pass.next[1])};
}

/* A slice of an octet. */
struct sorted_piece {
    int octet, slice;
};

/* Division of a row among the threads of a block. */
struct sort_threads {
    int slices, groups;
};

/* numbers: of the piece; zero where the grid has none. */
__device__ inline void load_piece(const row_to_sort &row, const float *source, sorted_piece piece,
                                  float (&numbers)[LR_CUDA_OCTET])
{
    const int place = piece.octet * LR_CUDA_OCTET;
    const int first = max(row.first - place, 0), end = min(row.end - place, (int)LR_CUDA_OCTET);
    const unsigned is_there = first < end ? (0xffu >> (LR_CUDA_OCTET - end)) & (0xffu << first) : 0;
    const float *from = source + (row.origin + (int64_t)row.step * place + piece.slice);
#pragma unroll
    for (int k = 0; k < LR_CUDA_OCTET; k++, from += row.step)
        numbers[k] = (is_there >> k & 1) != 0 ? load_once(from) : 0;
}

__device__ inline void store_piece(const lr_cuda_bands &pass, const lr_cuda_band_source &sorted, int64_t octet,
                                   int slice, const float (&numbers)[LR_CUDA_OCTET])
{
    const int slices = pass.layout.size[2];
    uint16_t *to = sorted.numbers + octet * sorted_octet(slices) + slice * LR_CUDA_OCTET;
    split_pair pairs[LR_CUDA_OCTET / 2];
#pragma unroll
    for (int k = 0; k < LR_CUDA_OCTET / 2; k++) pairs[k] = split(numbers[2 * k], numbers[2 * k + 1]);
    *reinterpret_cast<int4 *>(to) =
        int4{(int)pairs[0].high, (int)pairs[1].high, (int)pairs[2].high, (int)pairs[3].high};
    *reinterpret_cast<int4 *>(to + slices * LR_CUDA_OCTET) =
        int4{(int)pairs[0].low, (int)pairs[1].low, (int)pairs[2].low, (int)pairs[3].low};
}

__device__ inline float largest_of(const float (&numbers)[LR_CUDA_OCTET])
{
    float largest = 0;
#pragma unroll
    for (int k = 0; k < LR_CUDA_OCTET; k++) largest = fmaxf(largest, fabsf(numbers[k]));
    return largest;
}

/* Infinite numbers do not count: numbers beside them would vanish. */
__device__ inline float largest_finite(const float (&numbers)[LR_CUDA_OCTET])
{
    float largest = 0;
    for (int k = 0; k < LR_CUDA_OCTET; k++) {
        const float magnitude = fabsf(numbers[k]);
        largest = fmaxf(largest, magnitude < INFINITY ? magnitude : 0);
    }
    return largest;
}

/* A thread's share of a row, of which it keeps so many pieces. */
template <int Kept> struct row_sorter {
    row_to_sort row;
    sort_threads threads;
    int slices; /* of the grid */
    sorted_piece first;
    float numbers[Kept][LR_CUDA_OCTET];

    __device__ void start(const lr_cuda_bands &pass, const row_to_sort &own, sort_threads of, int thread)
    {
        row = own;
        threads = of;
        slices = pass.layout.size[2];
        first = {thread / of.slices, thread % of.slices};
        if (first.octet >= min(of.groups, row.octets)) first.slice = slices; /* nothing to do */
    }

    __device__ bool is_there(sorted_piece piece) const { return piece.slice < slices; }

    __device__ sorted_piece after(sorted_piece piece) const
    {
        const int octet = piece.octet + threads.groups;
        return octet < row.octets ? sorted_piece{octet, piece.slice}
                                  : sorted_piece{first.octet, piece.slice + threads.slices};
    }

    /* The largest number of all; infinite: one of them is. */
    __device__ float load(const float *source)
    {
        sorted_piece piece = first;
        float largest = 0;
#pragma unroll
        for (int n = 0; n < Kept; n++, piece = after(piece))
            if (is_there(piece)) load_piece(row, source, piece, numbers[n]);
        for (; is_there(piece); piece = after(piece)) {
            float others[LR_CUDA_OCTET];
            load_piece(row, source, piece, others);
            largest = fmaxf(largest, largest_of(others));
        }
        piece = first;
#pragma unroll
        for (int n = 0; n < Kept; n++, piece = after(piece))
            largest = fmaxf(largest, is_there(piece) ? largest_of(numbers[n]) : 0);
        return largest;
    }

    /* The largest of those that are finite: all are looked at anew. */
    __device__ float look_again(const float *source) const
    {
        float largest = 0;
        for (sorted_piece piece = first; is_there(piece); piece = after(piece)) {
            float again[LR_CUDA_OCTET];
            load_piece(row, source, piece, again);
            largest = fmaxf(largest, largest_finite(again));
        }
        return largest;
    }

    __device__ void store_scaled(const lr_cuda_bands &pass, const lr_cuda_band_source &sorted, sorted_piece piece,
                                 float scale, float (&piece_numbers)[LR_CUDA_OCTET]) const
    {
#pragma unroll
        for (int k = 0; k < LR_CUDA_OCTET; k++) piece_numbers[k] *= scale;
        store_piece(pass, sorted, (int64_t)row.row * (pass.pitch / LR_CUDA_OCTET) + piece.octet, piece.slice,
                    piece_numbers);
    }

    /* peak: the row's largest number. */
    __device__ void store(const lr_cuda_bands &pass, const float *source, const lr_cuda_band_source &sorted, float peak)
    {
        const float scale = scale_for(peak);
        sorted_piece piece = first;
#pragma unroll
        for (int n = 0; n < Kept; n++, piece = after(piece))
            if (is_there(piece)) store_scaled(pass, sorted, piece, scale, numbers[n]);
        for (; is_there(piece); piece = after(piece)) {
            float others[LR_CUDA_OCTET];
            load_piece(row, source, piece, others);
            store_scaled(pass, sorted, piece, scale, others);
        }
    }
};

#endif
