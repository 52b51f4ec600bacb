/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The gather by bands for one warp, as products of matrices. Its outputs are an octet of a row of the
 * lattice and that of the next one, and slices above them; sources come slab by slab, a row of the
 * lattice each. What 16 sources give an octet of outputs is a band of the kernel, the same for all
 * slices: a matrix of slices by sources times one of sources by outputs. Numbers are split into two
 * halves of 11 bits each, three products of which keep 22 bits. What a product is comes as a type with
 *   void begin<Kernels>(pass, slab, numbers), whose octet 0 is the warp's
 *   void multiply<Kernels>(pass, k, next), the products of step k, after which `next` is likely to come
 * and what a number's halves are, and how another kernel's numbers are read, as functions
 *   split_pair split(float a, float b);  float load_unit(const float *) */
#ifndef LR_CUDA_DIRECT_BANDS_CUH
#define LR_CUDA_DIRECT_BANDS_CUH

#include "cuda_interop/direct/gathers.cuh"

/* The kernel of a product: one for all voxels, the target's kernel, or the source's kernel. */
enum band_kernels { BAND_ONE, BAND_BACK, BAND_FORWARD };

/* A block's share of the work. */
struct band_block {
    int octet, row; /* first octet and row of the lattice */
    int slice;      /* first slice */
};

/* A warp's share of the block's work: an octet of a row and the octet next to it on the next row. */
struct band_warp {
    int side, pair;
    int octet, row; /* octet and first row of the lattice */
};

__device__ inline band_warp band_warp_at(const lr_cuda_bands &pass, const band_block &block, int number)
{
    const int side = number % pass.sides, pair = number / pass.sides;
    return {side, pair, block.octet + side, block.row + pair * LR_CUDA_BAND_ROWS};
}

/* A warp's steps through a slab. One load of four numbers. */
struct alignas(16) band_slab {
    int first, end; /* its steps; empty if end = first */
    int octet;      /* octet that the slab begins with, from the warp's first */
    float unit;     /* value of 1 in its numbers; 0 = its row is outside the grid */
};

/* Index of row r in lists of rows; -1 if the grid has no columns on it. */
__device__ inline int sorted_row(const lr_cuda_bands &pass, int r)
{
    const int row = r - pass.least_row;
    return row >= 0 && row < pass.num_lattice_rows ? row : -1;
}

/* A power of two that numbers up to `peak` are to be multiplied by to lie just below 2^15, what halves can
 * hold; further below it where peak is below 2^-101. */
__device__ inline float scale_for(float peak)
{
    int exponent = 0;
    frexpf(peak, &exponent);
    exponent = exponent < -100 ? -100 : exponent;
    return peak > 0 ? ldexpf(1.0f, 15 - exponent) : 1.0f;
}

/* The unit of numbers that scale_for was applied to. */
__device__ inline float unit_of(float peak)
{
    return 1 / scale_for(peak);
}

/* Numbers of an octet of slices: high and low halves. */
__device__ inline int sorted_octet(int slices)
{
    return 2 * slices * LR_CUDA_OCTET;
}

/* --- the gather --- */

/* The origin of a block's slab c in the sorted source: slice, octet, row. */
__device__ inline void slab_begin(const lr_cuda_bands &pass, const band_block &block, int c, int32_t at[3])
{
    const int late = max(c - pass.num_lists + 1, 0); /* slabs that the first pair has no list for */
    const int pair = (late + LR_CUDA_BAND_ROWS - 1) / LR_CUDA_BAND_ROWS;
    const int row = sorted_row(pass, block.row + pass.least_offset + c);
    const int base = row < 0 ? 0 : pass.bases[row].x;
    const int4 list = __ldg(pass.lists + c - pair * LR_CUDA_BAND_ROWS);
    at[0] = block.slice + pass.low_slice;
    at[1] = block.octet + (pair == 0 ? list.z : list.w) - base;
    at[2] = row; /* -1 = the slab lies outside */
}

/* The octets that the grid has of the row of slab c: first, one after last; from the block's first. */
__device__ inline int2 slab_octets(const lr_cuda_bands &pass, const band_block &block, int c)
{
    const int row = sorted_row(pass, block.row + pass.least_offset + c);
    const int4 base = pass.bases[row < 0 ? 0 : row];
    return {base.x - block.octet, base.y - block.octet};
}

/* The unit of the numbers of slab c; 0 if the slab is zero. */
__device__ inline float slab_unit(const lr_cuda_bands &pass, const band_block &block, const lr_cuda_band_source &sorted,
                                  int c)
{
    const int row = sorted_row(pass, block.row + pass.least_offset + c);
    return row < 0 ? 0 : load_unit(sorted.units + row);
}

/* The slab that a warp has list d for, except for its unit. Steps at both ends whose sources lie outside of
 * the grid are left out; all of them if the grid has none of the outputs. */
__device__ inline band_slab band_slab_of(const lr_cuda_bands &pass, const band_block &block, const band_warp &warp,
                                         int d)
{
    const int4 list = __ldg(pass.lists + d);
    const int2 *cuts = pass.cuts + d * pass.num_cuts;
    const int2 octets = slab_octets(pass, block, d + warp.pair * LR_CUDA_BAND_ROWS);
    const int before = warp.side + pass.least_octet, last = pass.num_cuts - 1;
    const int first = __ldg(cuts + min(max(octets.x - before, 0), last)).x;
    const int end = __ldg(cuts + min(max(octets.y - before, 0), last)).y;
    bool is_in_grid = false;
    for (int i = 0; i < LR_CUDA_BAND_ROWS; i++) {
        const int row = sorted_row(pass, warp.row + i);
        is_in_grid = is_in_grid || (row >= 0 && warp.octet >= pass.bases[row].x && warp.octet < pass.bases[row].y);
    }
    return {first, is_in_grid ? end : first, (warp.pair == 0 ? list.z : list.w) - warp.side, 0};
}

/* Products of a slab by its steps. numbers: the slab's. after: the step that is likely to come after its
 * last; to look for that pays where a step's weights are for the target's kernel. */
template <band_kernels Kernels, class Products>
__device__ inline void gather_band(const lr_cuda_bands &pass, const band_slab &slab, const uint16_t *numbers, int after,
                                   Products &products)
{
    products.template begin<Kernels>(pass, slab, numbers - slab.octet * sorted_octet(pass.slices));
    for (int k = slab.first; k < slab.end; k++)
        products.template multiply<Kernels>(pass, k, k + 1 < slab.end || Kernels != BAND_BACK ? k + 1 : after);
}

/* Offset from the weights of kernel 0 to those of the kernel of a place on a row of the lattice; also outside of the
 * grid, as far as steps reach. */
__device__ inline const int32_t *kernel_at(const lr_cuda_bands &pass, int l, int r)
{
    return pass.kernels + (r - pass.first_kernel[1]) * pass.kernel_pitch + l - pass.first_kernel[0];
}

/* --- tables --- */

/* The weight of a place of the list of offsets, for a kernel. */
__device__ inline float weight_at(const lr_cuda_bands &pass, const lr_cuda_band_fill &fill, bool forward, int place,
                                  int kernel)
{
    const int index = fill.offsets[place];
    const int offset = forward ? fill.num_offsets - 1 - index : index;
    return index < 0 ? 0 : fill.values[(int64_t)offset * pass.num_rows + kernel] * scale_for(*fill.peak);
}

/* Entry `thread` of all weights, where there is one kernel. fill.peak: the largest of all values. */
__device__ inline void fill_band_weights(const lr_cuda_bands &pass, const lr_cuda_band_fill &fill, bool forward,
                                         int64_t thread)
{
    const int64_t block = thread / LR_CUDA_BAND_BLOCK;
    const int entry = (int)(thread % LR_CUDA_BAND_BLOCK);
    if (block >= (int64_t)(fill.num_steps + 1) * LR_CUDA_BAND_ROWS) return;
    split_pair pairs[2];
    for (int half = 0; half < 2; half++) {
        const int first = block < (int64_t)fill.num_steps * LR_CUDA_BAND_ROWS
                              ? fill.places[2 * block + half]
                              : LR_CUDA_OCTET; /* a place without weights */
        const int place = first + 2 * (entry % 4) - entry / 4;
        pairs[half] = split(weight_at(pass, fill, forward, place, 0), weight_at(pass, fill, forward, place + 1, 0));
    }
    fill.weights[thread] = int4{(int)pairs[0].high, (int)pairs[1].high, (int)pairs[0].low, (int)pairs[1].low};
}

/* Entry `thread` of all spans, where kernels vary: 32 bits hold their number. */
__device__ inline void fill_band_span(const lr_cuda_bands &pass, const lr_cuda_band_fill &fill, bool forward,
                                      int64_t thread)
{
    const uint32_t number = (uint32_t)thread, list = number / (uint32_t)pass.span_pitch;
    const int at = (int)(number % (uint32_t)pass.span_pitch) - LR_CUDA_BAND_MARGIN;
    const int kernel = (int)(list % (uint32_t)pass.num_rows);
    const int span = (int)(list / (uint32_t)pass.num_rows);
    if (span >= pass.num_spans) return;
    const int2 range = fill.ranges[span];
    const bool is_margin = at < 0 || at >= range.y;
    const split_pair pair = split(is_margin ? 0 : weight_at(pass, fill, forward, range.x + at, kernel), 0);
    fill.spans[thread] = (pair.high & 0xffff) | pair.low << 16;
}

/* The thread-th entry of all rows' kernels. */
__device__ inline void fill_band_kernel(const lr_cuda_bands &pass, const lr_cuda_band_fill &fill, int64_t thread)
{
    const int row = (int)(thread / pass.kernel_pitch), place = (int)(thread % pass.kernel_pitch);
    if (row >= pass.num_kernel_rows) return;
    const int column = column_at(pass, pass.first_kernel[0] + place, pass.first_kernel[1] + row);
    fill.kernels[thread] = column < 0 ? 0 : row_of(pass.num_rows, fill.map[column]) * pass.span_pitch;
}

#endif
