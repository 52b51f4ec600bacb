/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Kernels of the gathers of the family `direct` (lr/direct.h, figures 2 and 3 of paper 1). Tests also run all kernels
 * on the processor, thread by thread. The kernel with sources in shared memory therefore consists of two functions:
 * all threads must have loaded the sources before the first thread adds them up. Images are types with
 *   float4 load(q, x, y), void store(q, x, y, texel), void store_slice(q, x, y, slice, value)
 *   tables, a member with the look-up tables, which are in the same kind of memory as the images
 * A texel (q, x, y) has slices 4 q .. 4 q + 3 of a column. q, x and y start at the grid's first texel. Images have
 * zeros around the grid (direct/compute/direct.h). */
#pragma once

#include "cuda_interop/direct/passes.h"

__device__ inline int floor_div(int number, int by)
{
    return number >= 0 ? number / by : -((by - 1 - number) / by);
}

/* Index in images of column (l, r) of the pass's lattice; -1 if the column is outside the grid. */
template <class Pass> __device__ inline int column_at(const Pass &pass, int l, int r)
{
    const lr_cuda_layout &layout = pass.layout;
    const int x = l * pass.next[0] + r * pass.across[0];
    const int y = l * pass.next[1] + r * pass.across[1];
    return x >= 0 && x < layout.size[0] && y >= 0 && y < layout.size[1]
               ? x + layout.margin[1] + layout.extent[1] * (y + layout.margin[2])
               : -1;
}

/* Row of mSRval for a kernel; row 0 for all kernels if mSRval has one row. The kernel belongs to the target for back
 * projection, and to the source for forward projection. */
__device__ inline int row_of(int num_rows, int kernel)
{
    return kernel < num_rows ? kernel : num_rows - 1;
}

/* --- look-up tables: (i) reads entry i of a list, (x, y) reads entry x of row y --- */

template <class T> struct array_table {
    const T *entries;
    int pitch; /* entries of a row */

    __device__ T operator()(int i) const { return __ldg(entries + i); }
    __device__ T operator()(int x, int y) const { return __ldg(entries + ((unsigned)pitch * y + x)); }
};

template <class T> struct texture_table {
    cudaTextureObject_t texture; /* 3-D, a slice per view */
    int slice;

    __device__ T operator()(int i) const
    {
        return (*this)((int)((unsigned)i % LR_CUDA_LIST_WIDTH), (int)((unsigned)i / LR_CUDA_LIST_WIDTH));
    }
    __device__ T operator()(int x, int y) const { return tex3D<T>(texture, x, y, slice); }
};

/* The tables that the papers keep in textures. Gathers over mSR have LORmap only. */
template <template <class> class Table> struct lookup_tables {
    Table<uint16_t> map; /* with margins */
    Table<int4> points;  /* contents as in lr_cuda_cloud, here and below */
    Table<float> factors, profiles;

    template <class Pass> __device__ int row_at(const Pass &pass, int x, int y) const
    {
        return row_of(pass.num_rows, map(x + pass.layout.margin[1], y + pass.layout.margin[2]));
    }
};

/* --- images --- */

struct array_images {
    lr_cuda_layout layout;
    const float4 *source;
    float4 *target;
    lookup_tables<array_table> tables;

    __device__ int64_t place(int q, int x, int y) const
    {
        return q + layout.margin[0] +
               (int64_t)layout.extent[0] * (x + layout.margin[1] + (int64_t)layout.extent[1] * (y + layout.margin[2]));
    }
    __device__ float4 load(int q, int x, int y) const { return __ldg(source + place(q, x, y)); }
    __device__ void store(int q, int x, int y, float4 texel) const { target[place(q, x, y)] = texel; }
    __device__ void store_slice(int q, int x, int y, int slice, float value) const
    {
        reinterpret_cast<float *>(target + place(q, x, y))[slice] = value;
    }
};

struct texture_images {
    lr_cuda_layout layout;
    cudaTextureObject_t source;
    cudaSurfaceObject_t target;
    lookup_tables<texture_table> tables;

    __device__ float4 load(int q, int x, int y) const
    {
        return tex3D<float4>(source, q + layout.margin[0], x + layout.margin[1], y + layout.margin[2]);
    }
    __device__ void store(int q, int x, int y, float4 texel) const
    {
        surf3Dwrite(texel, target, (q + layout.margin[0]) * (int)sizeof(float4), x + layout.margin[1],
                    y + layout.margin[2]);
    }
    __device__ void store_slice(int q, int x, int y, int slice, float value) const
    {
        surf3Dwrite(value, target, (q + layout.margin[0]) * (int)sizeof(float4) + slice * (int)sizeof(float),
                    x + layout.margin[1], y + layout.margin[2]);
    }
};

/* Describes images and tables to a kernel. cloud: NULL for gathers over mSR. */
inline array_images arrays_of(const lr_cuda_layout &layout, const lr_cuda_images &images, const lr_cuda_cloud *cloud)
{
    array_images arrays = {layout, images.source, images.target, {}};
    arrays.tables.map = {images.map, layout.extent[1]};
    if (cloud != nullptr) {
        arrays.tables.points = {cloud->points, 0};
        arrays.tables.factors = {cloud->factors, 0};
        arrays.tables.profiles = {cloud->profiles, cloud->num_columns};
    }
    return arrays;
}

inline texture_images textures_of(const lr_cuda_layout &layout, const lr_cuda_images &images)
{
    const uint64_t *textures = images.tables.textures;
    const int slice = images.tables.slice;
    return {layout,
            images.source_texture,
            images.target_surface,
            {{textures[LR_CUDA_MAP], slice},
             {textures[LR_CUDA_POINTS], slice},
             {textures[LR_CUDA_FACTORS], slice},
             {textures[LR_CUDA_PROFILES], slice}}};
}

__device__ inline int64_t thread_number()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/* --- (a) thread level: one voxel per thread --- */

template <bool Forward, class Images>
__global__ void __launch_bounds__(LR_CUDA_GROUP) voxels(lr_cuda_gather pass, Images images)
{
    const int64_t thread = thread_number();
    const int z = (int)(thread % pass.layout.size[2]);
    const int x = (int)(thread / pass.layout.size[2] % pass.layout.size[0]);
    const int y = (int)(thread / pass.layout.size[2] / pass.layout.size[0]);
    if (y >= pass.layout.size[1]) return;
    const int own_row = images.tables.row_at(pass, x, y);
    float sum = 0;
    for (int i = 0; i < pass.num_offsets; i++) {
        const int4 d = pass.offsets[i];
        const int slice = z + d.z, quad = floor_div(slice, 4), k = slice - 4 * quad;
        const int row = Forward ? images.tables.row_at(pass, x + d.x, y + d.y) : own_row;
        const int offset = Forward ? pass.num_offsets - 1 - i : i;
        const float value = pass.values[(int64_t)offset * pass.num_rows + row];
        const float4 texel = images.load(quad, x + d.x, y + d.y);
        sum += value * (k == 0 ? texel.x : k == 1 ? texel.y : k == 2 ? texel.z : texel.w);
    }
    images.store_slice(z / 4, x, y, z % 4, sum);
}

/* --- (b) instruction level: the four voxels of one texel per thread --- */

/* Slices shift .. shift + 3 of two texels, one above the other. */
__device__ inline float4 shifted(const float4 &low, const float4 &high, int shift)
{
    return shift == 0   ? low
           : shift == 1 ? make_float4(low.y, low.z, low.w, high.x)
           : shift == 2 ? make_float4(low.z, low.w, high.x, high.y)
                        : make_float4(low.w, high.x, high.y, high.z);
}

__device__ inline void add(float4 &sum, float weight, const float4 &texel)
{
    sum.x += weight * texel.x;
    sum.y += weight * texel.y;
    sum.z += weight * texel.z;
    sum.w += weight * texel.w;
}

/* Returns the texel with zeros in place of slices beyond the grid's last slice, because images must stay zero beyond
   the grid. */
__device__ inline float4 within_grid(const lr_cuda_layout &layout, const float4 &texel, int quad)
{
    const int left = layout.size[2] - 4 * quad;
    return make_float4(left > 0 ? texel.x : 0, left > 1 ? texel.y : 0, left > 2 ? texel.z : 0, left > 3 ? texel.w : 0);
}

template <bool Forward, class Images>
__global__ void __launch_bounds__(LR_CUDA_GROUP) texels(lr_cuda_gather pass, Images images)
{
    const int64_t thread = thread_number();
    const int q = (int)(thread % pass.layout.quads);
    const int x = (int)(thread / pass.layout.quads % pass.layout.size[0]);
    const int y = (int)(thread / pass.layout.quads / pass.layout.size[0]);
    if (y >= pass.layout.size[1]) return;
    const int own_row = images.tables.row_at(pass, x, y);
    float4 sum = make_float4(0, 0, 0, 0);
    for (int i = 0; i < pass.num_offsets; i++) {
        const int4 d = pass.offsets[i];
        const int quad = floor_div(d.z, 4), shift = d.z - 4 * quad;
        const float4 low = images.load(q + quad, x + d.x, y + d.y);
        const float4 high = shift == 0 ? low : images.load(q + quad + 1, x + d.x, y + d.y);
        const int row = Forward ? images.tables.row_at(pass, x + d.x, y + d.y) : own_row;
        const int offset = Forward ? pass.num_offsets - 1 - i : i;
        add(sum, pass.values[(int64_t)offset * pass.num_rows + row], shifted(low, high, shift));
    }
    images.store(q, x, y, within_grid(pass.layout, sum, q));
}

/* --- the gathers of paper 2 of lr/direct.h. Voxels are taken list by list along the line of response (section II.A of
 * the paper), and the cloud is sorted along this line. Values are products of tables for time of flight, axial distance
 * and distance across the line (II.B). Sources come from the texture's cache or from shared memory (II.C, figure 3)
 * --- */

/* Converts a place in a list to a column of the grid. */
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

/* Value of point i. For back projection, the profile is the target's. For forward projection, it is the source's,
 * seen from the opposite side. */
template <bool Forward, class Tables>
__device__ inline float value_of(const lr_cuda_cloud &pass, const Tables &tables, int i, int number, int row)
{
    return tables.factors(i) * tables.profiles(Forward ? pass.num_columns - 1 - number : number, row);
}

/* --- (d) sources by texture fetches --- */

template <bool Forward, class Images>
__global__ void __launch_bounds__(LR_CUDA_GROUP) cloud(lr_cuda_cloud pass, Images images)
{
    const int64_t thread = thread_number(), next = thread / pass.layout.quads;
    const int q = (int)(thread % pass.layout.quads);
    const int places = pass.layout.size[pass.along];
    const int list = (int)(next / places);
    int at[2];
    if (list >= pass.num_lists) return;
    column_of(pass, (int)(next % places), pass.least_list + list, at);
    if (!is_within(pass, at)) return;
    const int own_row = images.tables.row_at(pass, at[0], at[1]);
    float4 sum = make_float4(0, 0, 0, 0);
    for (int i = 0; i < pass.num_points; i++) {
        const int4 d = images.tables.points(i);
        const int quad = floor_div(d.z, 4), shift = d.z - 4 * quad;
        const float4 low = images.load(q + quad, at[0] + d.x, at[1] + d.y);
        const float4 high = shift == 0 ? low : images.load(q + quad + 1, at[0] + d.x, at[1] + d.y);
        const int row = Forward ? images.tables.row_at(pass, at[0] + d.x, at[1] + d.y) : own_row;
        add(sum, value_of<Forward>(pass, images.tables, i, d.w, row), shifted(low, high, shift));
    }
    images.store(q, at[0], at[1], within_grid(pass.layout, sum, q));
}

/* --- (c) sources in shared memory --- */

/* A block's outputs begin at first = (place, list, quad). The block's sources extend beyond the outputs by
   pass.reach. */
struct cloud_tile {
    int first[3];
};

/* A block's texels of shared memory along an axis: 0 = places, 1 = lists (slowest), 2 = quads (fastest). */
__device__ __host__ inline int tile_extent(const lr_cuda_cloud &pass, int axis)
{
    const int outputs = axis == 0 ? LR_CUDA_TILE_PLACES : axis == 1 ? LR_CUDA_TILE_LISTS : LR_CUDA_TILE_QUADS;
    return outputs + 2 * pass.reach[axis];
}

__device__ __host__ inline int64_t tile_texels(const lr_cuda_cloud &pass)
{
    return (int64_t)tile_extent(pass, 0) * tile_extent(pass, 1) * tile_extent(pass, 2);
}

/* One thread's part in loading a block's sources into shared memory. All threads of the block must have called this
 * function before one of them calls gather_tile. */
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
            const lr_cuda_layout &layout = pass.layout;
            const int at[3] = {quad + layout.margin[0], column[0] + layout.margin[1], column[1] + layout.margin[2]};
            is_there = at[0] >= 0 && at[0] < layout.extent[0] && at[1] >= 0 && at[1] < layout.extent[1] && at[2] >= 0 &&
                       at[2] < layout.extent[2];
        }
        shared[k] = is_there ? images.load(quad, column[0], column[1]) : make_float4(0, 0, 0, 0);
    }
}

template <bool Forward, class Images>
__device__ void gather_tile(const lr_cuda_cloud &pass, const Images &images, const cloud_tile &tile,
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
    const int own_row = images.tables.row_at(pass, at[0], at[1]);
    float4 sum = make_float4(0, 0, 0, 0);
    for (int i = 0; i < pass.num_points; i++) {
        const int4 d = images.tables.points(i);
        const int along = pass.along == 0 ? d.x : d.y, across = pass.along == 0 ? d.y : d.x;
        const int list = across - pass.shift[place + along + margin] + pass.shift[place + margin];
        const int up = floor_div(d.z, 4), shift = d.z - 4 * up;
        const float4 *texel =
            shared + q + up + pass.reach[2] + quads * (p + along + pass.reach[0] + places * (l + list + pass.reach[1]));
        const int row = Forward ? images.tables.row_at(pass, at[0] + d.x, at[1] + d.y) : own_row;
        add(sum, value_of<Forward>(pass, images.tables, i, d.w, row),
            shifted(texel[0], shift == 0 ? texel[0] : texel[1], shift));
    }
    images.store(quad, at[0], at[1], within_grid(pass.layout, sum, quad));
}

/* --- the gather by columns (direct/lattice.h): four neighbouring columns of outputs, twelve slices of each. A source
 * column's slices are read once, into registers, and serve all outputs and all offsets along the column. Every index of
 * a local array is a constant, so that the compiler keeps the array in registers --- */

/* State of a thread in the loop over the steps. */
struct columns_thread {
    const float4 *source; /* texel of the first output's first slice */
    const uint16_t *map;  /* LORmap entry of the first output */
    int row[LR_CUDA_OUTPUTS];
    float sums[LR_CUDA_OUTPUTS][LR_CUDA_SLICES];
};

/* Runs the steps of one class, whose sources begin at slice Shift of a texel. All: each output has weights. */
template <bool Forward, int Shift, int Taps, bool All>
__device__ inline void take_class(const lr_cuda_columns &pass, columns_thread &thread)
{
    constexpr int number = 8 * (Taps == 1 ? 0 : Taps - 2) + 2 * Shift + All;
    constexpr int quads = (Shift + LR_CUDA_SLICES + Taps - 1 + 3) / 4;
#pragma unroll 1
    for (int k = pass.first[number]; k < pass.first[number + 1]; k++) {
        const lr_cuda_column_step step = pass.steps[k];
        if (Forward) {
            const int row = row_of(pass.num_rows, __ldg(thread.map + step.map));
#pragma unroll
            for (int j = 0; j < LR_CUDA_OUTPUTS; j++) thread.row[j] = row;
        }

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
            const float4 *weights = pass.weights + step.weights;
            const int place = j * pass.num_rows + thread.row[j];
            float taps[4];
            if (Taps == 1) {
                taps[0] = __ldg(reinterpret_cast<const float *>(weights) + place);
            } else {
                const float4 all = __ldg(weights + place);
                taps[0] = all.x;
                taps[1] = all.y;
                taps[2] = all.z;
                taps[3] = all.w;
            }
#pragma unroll
            for (int r = 0; r < Taps; r++) {
#pragma unroll
                for (int z = 0; z < LR_CUDA_SLICES; z++) thread.sums[j][z] += taps[r] * window[Shift + r + z];
            }
        }
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

/* A warp has neighbouring rows of the lattice and all their slices. A block's warps are next to each other along the
 * line, and share sources and weights. source, target: whole images with margins. */
template <bool Forward>
__global__ void __launch_bounds__(LR_CUDA_COLUMN_LANES *LR_CUDA_COLUMN_WARPS, 4)
    columns(lr_cuda_columns pass, const float4 *source, float4 *target)
{
    const lr_cuda_layout &layout = pass.layout;
    const int pieces = (layout.size[2] + LR_CUDA_SLICES - 1) / LR_CUDA_SLICES;
    const int number = (int)(blockIdx.y * LR_CUDA_COLUMN_LANES + threadIdx.x);
    const int place = (int)(blockIdx.x * LR_CUDA_COLUMN_WARPS + threadIdx.y), row = number / pieces;
    if (place >= pass.num_places[0] || row >= pass.num_places[1]) return;

    const int p = (pass.least[0] + place) * LR_CUDA_OUTPUTS, q = pass.least[1] + row;
    const int at[3] = {p * pass.next[0] + q * pass.across[0], p * pass.next[1] + q * pass.across[1],
                       number % pieces * LR_CUDA_SLICES};
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

    /* Columns and slices outside the grid are not stored. */
#pragma unroll
    for (int j = 0; j < LR_CUDA_OUTPUTS; j++) {
        const int x = at[0] + j * pass.next[0], y = at[1] + j * pass.next[1];
        if (x < 0 || x >= layout.size[0] || y < 0 || y >= layout.size[1]) continue;
        float4 *texels_of_column =
            target + layout.margin[0] +
            (int64_t)layout.extent[0] * (x + layout.margin[1] + (int64_t)layout.extent[1] * (y + layout.margin[2]));
#pragma unroll
        for (int k = 0; k < LR_CUDA_SLICES / 4; k++) {
            const int quad = at[2] / 4 + k;
            const float *sums = &thread.sums[j][4 * k];
            if (quad < layout.quads)
                texels_of_column[quad] = within_grid(layout, make_float4(sums[0], sums[1], sums[2], sums[3]), quad);
        }
    }
}

/* Weights of each step, output and row: [steps][outputs][rows]. indices: [steps]
 * [outputs][4], in mSR, -1 = none. */
template <bool Forward> __global__ void weights(lr_cuda_columns pass, lr_cuda_gather tables, const int32_t *indices)
{
    const int64_t thread = thread_number();
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
    float4 *to = const_cast<float4 *>(pass.weights) + pass.steps[step].weights;
    if (step < pass.first[8]) /* weights of one tap */
        reinterpret_cast<float *>(to)[j * rows + row] = taps[0];
    else
        to[j * rows + row] = make_float4(taps[0], taps[1], taps[2], taps[3]);
}
