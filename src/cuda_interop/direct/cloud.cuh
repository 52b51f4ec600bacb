/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The gathers of paper 2 of lr/direct.h for one thread: voxels list by list along the line of response
 * (section II.A there), a cloud sorted along it, values as products of tables for time of flight,
 * axial distance and distance across (II.B), sources from the texture's cache or from shared memory
 * (II.C, figure 3). Images and LORmap are types as in direct_kernels.cuh. */
#ifndef LR_CUDA_DIRECT_CLOUD_CUH
#define LR_CUDA_DIRECT_CLOUD_CUH

#include "cuda_interop/direct/kernels.cuh"

/* A place of a list as a column of the grid. */
__device__ inline void column_of(const lr_cuda_cloud &pass, int place, int list, int (&column)[2])
{
    const int across = list + pass.shift[place + pass.layout.margin[1 + pass.along]];
    column[0] = pass.along == 0 ? place : across;
    column[1] = pass.along == 0 ? across : place;
}

__device__ inline bool is_within(const lr_cuda_cloud &pass, const int (&column)[2])
{
    return column[0] >= 0 && column[0] < pass.layout.size[0] && column[1] >= 0 && column[1] < pass.layout.size[1];
}

/* Value of point i: the profile is that of the target on the way back; on the way forward that of
 * the source, seen from the other side. */
template <bool Forward> __device__ inline float value_of(const lr_cuda_cloud &pass, int i, int number, int row)
{
    const int column = Forward ? pass.num_columns - 1 - number : number;
    return pass.factors[i] * pass.profiles[(int64_t)row * pass.num_columns + column];
}

/* --- (d) sources by texture fetches --- */

template <bool Forward, class Images, class Map>
__device__ void gather_cloud(const lr_cuda_cloud &pass, const Images &images, const Map &map, int64_t thread)
{
    const int q = (int)(thread % pass.layout.quads);
    const int64_t next = thread / pass.layout.quads;
    const int places = pass.layout.size[pass.along];
    const int list = (int)(next / places);
    int at[2];
    if (list >= pass.num_lists) return;
    column_of(pass, (int)(next % places), pass.least_list + list, at);
    if (!is_within(pass, at)) return;
    const int own_row = row_of(pass.num_rows, map(at[0], at[1]));
    float4 sum = make_float4(0, 0, 0, 0);
    for (int i = 0; i < pass.num_points; i++) {
        const int4 d = pass.points[i];
        const int quad = floor_div(d.z, 4), shift = d.z - 4 * quad;
        const float4 low = images.load(q + quad, at[0] + d.x, at[1] + d.y);
        const float4 high = shift == 0 ? low : images.load(q + quad + 1, at[0] + d.x, at[1] + d.y);
        const int row = Forward ? row_of(pass.num_rows, map(at[0] + d.x, at[1] + d.y)) : own_row;
        add(sum, value_of<Forward>(pass, i, d.w, row), shifted(low, high, shift));
    }
    images.store(q, at[0], at[1], within_grid(pass.layout, sum, q));
}

/* --- (c) sources in shared memory --- */

/* A block's outputs begin at (place, list, quad); its sources reach further by pass.reach. */
struct cloud_tile {
    int first[3];
};

/* Texels of shared memory that a block takes: quads fastest, then places, then lists. */
__device__ __host__ inline int tile_extent(const lr_cuda_cloud &pass, int axis)
{
    const int outputs = axis == 0 ? LR_CUDA_TILE_PLACES : axis == 1 ? LR_CUDA_TILE_LISTS : LR_CUDA_TILE_QUADS;
    return outputs + 2 * pass.reach[axis];
}

__device__ __host__ inline int64_t tile_texels(const lr_cuda_cloud &pass)
{
    return (int64_t)tile_extent(pass, 0) * tile_extent(pass, 1) * tile_extent(pass, 2);
}

/* Whether images have a texel there, margins included. */
__device__ inline bool has_texel(const lr_cuda_cloud &pass, int quad, const int (&column)[2])
{
    const lr_cuda_layout &layout = pass.layout;
    const int at[3] = {quad + layout.margin[0], column[0] + layout.margin[1], column[1] + layout.margin[2]};
    return at[0] >= 0 && at[0] < layout.extent[0] && at[1] >= 0 && at[1] < layout.extent[1] && at[2] >= 0 &&
           at[2] < layout.extent[2];
}

/* First half of a block's work, for one of its threads; all threads wait before the second. */
template <class Images>
__device__ void stage_tile(const lr_cuda_cloud &pass, const Images &images, const cloud_tile &tile, float4 *shared,
                           int thread, int threads)
{
    const int quads = tile_extent(pass, 2), places = tile_extent(pass, 0);
    for (int64_t k = thread; k < tile_texels(pass); k += threads) {
        const int quad = (int)(k % quads) + tile.first[2] - pass.reach[2];
        const int place = (int)(k / quads % places) + tile.first[0] - pass.reach[0];
        const int list = (int)(k / quads / places) + tile.first[1] - pass.reach[1];
        const int margin = pass.layout.margin[1 + pass.along];
        int column[2] = {-1, -1};
        bool is_there = place >= -margin && place < pass.layout.size[pass.along] + margin;
        if (is_there) {
            column_of(pass, place, list, column);
            is_there = has_texel(pass, quad, column);
        }
        shared[k] = is_there ? images.load(quad, column[0], column[1]) : make_float4(0, 0, 0, 0);
    }
}

template <bool Forward, class Images, class Map>
__device__ void gather_tile(const lr_cuda_cloud &pass, const Images &images, const Map &map, const cloud_tile &tile,
                            const float4 *shared, int thread)
{
    const int quads = tile_extent(pass, 2), places = tile_extent(pass, 0);
    const int q = thread % LR_CUDA_TILE_QUADS, p = thread / LR_CUDA_TILE_QUADS % LR_CUDA_TILE_PLACES;
    const int l = thread / LR_CUDA_TILE_QUADS / LR_CUDA_TILE_PLACES;
    const int place = tile.first[0] + p, quad = tile.first[2] + q;
    int at[2];
    if (place >= pass.layout.size[pass.along] || quad >= pass.layout.quads) return;
    column_of(pass, place, tile.first[1] + l, at);
    if (!is_within(pass, at)) return;
    const int margin = pass.layout.margin[1 + pass.along];
    const int own_row = row_of(pass.num_rows, map(at[0], at[1]));
    float4 sum = make_float4(0, 0, 0, 0);
    for (int i = 0; i < pass.num_points; i++) {
        const int4 d = pass.points[i];
        const int along = pass.along == 0 ? d.x : d.y, across = pass.along == 0 ? d.y : d.x;
        const int list = across - pass.shift[place + along + margin] + pass.shift[place + margin];
        const int up = floor_div(d.z, 4), shift = d.z - 4 * up;
        const float4 *texel =
            shared + q + up + pass.reach[2] + quads * (p + along + pass.reach[0] + places * (l + list + pass.reach[1]));
        const int row = Forward ? row_of(pass.num_rows, map(at[0] + d.x, at[1] + d.y)) : own_row;
        add(sum, value_of<Forward>(pass, i, d.w, row), shifted(texel[0], shift == 0 ? texel[0] : texel[1], shift));
    }
    images.store(quad, at[0], at[1], within_grid(pass.layout, sum, quad));
}

#endif
