/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The gather by bands for one warp, as matrix products. An octet is eight neighbouring positions on a row of the
 * lattice. A warp's outputs are an octet of one row and the same octet of the next row, in several slices. The warp
 * reads its sources slab by slab. A slab has sources of one row of the lattice. The weights from 16 sources to an
 * octet of outputs are a band of the kernel. They are the same for all slices, so a product is a matrix of slices by
 * sources times a matrix of sources by outputs. Each number is split into a high and a low part of 11 bits. Three
 * products of these parts keep 22 bits. The products are a type with
 *   void begin<Kernels>(pass, slab, numbers)   numbers: address of the warp's own octet, which is octet 0
 *   void multiply<Kernels>(pass, k, next)      the products of step k; `next` is the step that probably follows
 * Two functions split a pair of numbers into parts, and read a number that another kernel has written:
 *   split_pair split(float a, float b);  float load_unit(const float *) */
#pragma once

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

/* A warp's steps through a slab. One load instruction reads the four numbers. */
struct alignas(16) band_slab {
    int first, end; /* first step, and one after the last; equal if there are no steps */
    int octet;      /* first octet of the slab, counted from the warp's first octet */
    float unit;     /* factor from the slab's numbers to true values; 0 = the slab's row is outside the grid */
};

/* Index of lattice row r in arrays that have an entry for each lattice row of the grid; -1 if the grid has no columns
 * on this row. */
__device__ inline int sorted_row(const lr_cuda_bands &pass, int r)
{
    const int row = r - pass.least_row;
    return row >= 0 && row < pass.num_lattice_rows ? row : -1;
}

/* Returns the power of two that scales numbers up to `peak` to just below 2^15, which halves can hold. The scaled
 * numbers are smaller if `peak` is below 2^-101. */
__device__ inline float scale_for(float peak)
{
    int exponent = 0;
    frexpf(peak, &exponent);
    exponent = exponent < -100 ? -100 : exponent;
    return peak > 0 ? ldexpf(1.0f, 15 - exponent) : 1.0f;
}

/* Returns the factor that converts numbers multiplied by scale_for(peak) back to true values. */
__device__ inline float unit_of(float peak)
{
    return 1 / scale_for(peak);
}

/* Returns the count of 16-bit numbers in an octet of this many slices. Each source value has a high and a low part. */
__device__ inline int sorted_octet(int slices)
{
    return 2 * slices * LR_CUDA_OCTET;
}

/* --- the gather --- */

/* Finds the origin of a block's slab c in the sorted source. at[0]: slice; at[1]: octet; at[2]: row. */
__device__ inline void slab_begin(const lr_cuda_bands &pass, const band_block &block, int c, int32_t at[3])
{
    const int late = max(c - pass.num_lists + 1, 0); /* number of slabs before the first pair of warps has a list */
    const int pair = (late + LR_CUDA_BAND_ROWS - 1) / LR_CUDA_BAND_ROWS;
    const int row = sorted_row(pass, block.row + pass.least_offset + c);
    const int base = row < 0 ? 0 : pass.bases[row].x;
    const int4 list = __ldg(pass.lists + c - pair * LR_CUDA_BAND_ROWS);
    at[0] = block.slice + pass.low_slice;
    at[1] = block.octet + (pair == 0 ? list.z : list.w) - base;
    at[2] = row; /* Returns the range of octets that the grid has on slab c's row, counted from the block's first octet.
                    x: first octet. y: one after the last. */
}

/* Returns which octets of slab c's row lie in the grid, counted from the block's first octet. x: first octet; y: one
 * after the last. */
__device__ inline int2 slab_octets(const lr_cuda_bands &pass, const band_block &block, int c)
{
    const int row = sorted_row(pass, block.row + pass.least_offset + c);
    const int4 base = pass.bases[row < 0 ? 0 : row];
    return {base.x - block.octet, base.y - block.octet};
}

/* Returns the unit of the numbers of slab c; 0 if all numbers of the slab are zero. */
__device__ inline float slab_unit(const lr_cuda_bands &pass, const band_block &block, const lr_cuda_band_source &sorted,
                                  int c)
{
    const int row = sorted_row(pass, block.row + pass.least_offset + c);
    return row < 0 ? 0 : load_unit(sorted.units + row);
}

/* Returns the slab to which a warp applies list d. The slab's unit is not set. Steps at both ends are left out if their
 * sources lie outside the grid. All steps are left out if the grid has none of the outputs. */
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

/* Computes the products of a slab, step by step. numbers: source values of the slab. after: the step that probably
 * follows the last step of the slab, and is loaded ahead. Only BAND_BACK uses `after`; other kernels load step slab.end
 * ahead. */
template <band_kernels Kernels, class Products>
__device__ inline void gather_band(const lr_cuda_bands &pass, const band_slab &slab, const uint16_t *numbers, int after,
                                   Products &products)
{
    products.template begin<Kernels>(pass, slab, numbers - slab.octet * sorted_octet(pass.slices));
    for (int k = slab.first; k < slab.end; k++)
        products.template multiply<Kernels>(pass, k, k + 1 < slab.end || Kernels != BAND_BACK ? k + 1 : after);
}

/* Returns the entry of pass.kernels for place l on lattice row r. The entry is the distance from a weight of kernel 0
 * to the same weight of the place's kernel. The place may be outside the grid, as far as steps reach. */
__device__ inline const int32_t *kernel_at(const lr_cuda_bands &pass, int l, int r)
{
    return pass.kernels + (r - pass.first_kernel[1]) * pass.kernel_pitch + l - pass.first_kernel[0];
}

/* --- tables --- */

/* Returns the scaled weight that a kernel has at entry `place` of the list of offsets; 0 if the entry has no offset. */
__device__ inline float weight_at(const lr_cuda_bands &pass, const lr_cuda_band_fill &fill, bool forward, int place,
                                  int kernel)
{
    const int index = fill.offsets[place];
    const int offset = forward ? fill.num_offsets - 1 - index : index;
    return index < 0 ? 0 : fill.values[(int64_t)offset * pass.num_rows + kernel] * scale_for(*fill.peak);
}

/* Fills in fill.weights[thread]. This function is only for views that have one kernel. fill.peak: the maximum of all
 * values. */
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
                              : LR_CUDA_OCTET; /* a position without weights */
        const int place = first + 2 * (entry % 4) - entry / 4;
        pairs[half] = split(weight_at(pass, fill, forward, place, 0), weight_at(pass, fill, forward, place + 1, 0));
    }
    fill.weights[thread] = int4{(int)pairs[0].high, (int)pairs[1].high, (int)pairs[0].low, (int)pairs[1].low};
}

/* Fills in fill.spans[thread], one entry of the array that holds all spans. This function is only for views whose
 * blurring kernels differ between voxels. Indices of entries fit in 32 bits. */
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

/* Fills in fill.kernels[thread], one entry of the array that holds the kernels of all rows. */
__device__ inline void fill_band_kernel(const lr_cuda_bands &pass, const lr_cuda_band_fill &fill, int64_t thread)
{
    const int row = (int)(thread / pass.kernel_pitch), place = (int)(thread % pass.kernel_pitch);
    if (row >= pass.num_kernel_rows) return;
    const int column = column_at(pass, pass.first_kernel[0] + place, pass.first_kernel[1] + row);
    fill.kernels[thread] = column < 0 ? 0 : row_of(pass.num_rows, fill.map[column]) * pass.span_pitch;
}
