// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
#include "stand_ins.h"

#include "cuda_interop/direct/gathers.cuh"
#include "cuda_interop/direct/updates.cu"
#include "cuda_interop/direct/values.cu"
#include "fft/cufft_product.cuh"
#include "on_cpu.h"

#include <type_traits>

namespace
{

/* All threads of a block finish the first half before any of them begins the second half. */
template <bool Forward, class Images> void tiles(const lr_cuda_cloud &pass, const Images &images)
{
    const int outputs[3] = {LR_CUDA_TILE_PLACES, LR_CUDA_TILE_LISTS, LR_CUDA_TILE_QUADS};
    const int threads = outputs[0] * outputs[1] * outputs[2];
    std::vector<float4> shared(tile_texels(pass));
    for (int list = 0; list < pass.num_lists; list += outputs[1]) {
        for (int place = 0; place < pass.layout.size[pass.along]; place += outputs[0]) {
            for (int quad = 0; quad < pass.layout.quads; quad += outputs[2]) {
                const cloud_tile tile = {{place, pass.least_list + list, quad}};
                for (int k = 0; k < threads; k++) stage_tile(pass, images, tile, shared.data(), k, threads);
                for (int k = 0; k < threads; k++) gather_tile<Forward>(pass, images, tile, shared.data(), k);
            }
        }
    }
}

std::vector<int4> list_of(const int32_t *entries, int32_t count)
{
    std::vector<int4> list(count);
    for (int32_t i = 0; i < count; i++)
        list[i] = int4{entries[4 * i], entries[4 * i + 1], entries[4 * i + 2], entries[4 * i + 3]};
    return list;
}

/* Copies of tables in textures of three slices. Tables are in the second slice; the other slices, and what is left of
 * the last row, have all bits set. */
struct table_textures {
    enum { SLICE = 1, NUM_SLICES = 3 };
    std::vector<char> texels[LR_CUDA_NUM_TEXTURES];
    stand_in_texture textures[LR_CUDA_NUM_TEXTURES];
    lr_cuda_table_textures tables = {};

    template <class T> void put(int n, const T *entries, int64_t count, int width)
    {
        const int rows = (int)((count + width - 1) / width);
        const int64_t slice_bytes = (int64_t)width * rows * (int64_t)sizeof(T);
        texels[n].assign(NUM_SLICES * slice_bytes, (char)0xff);
        std::memcpy(texels[n].data() + SLICE * slice_bytes, entries, count * sizeof(T));
        textures[n] = {texels[n].data(), {width, rows, NUM_SLICES}, (int)sizeof(T)};
        tables.textures[n] = reinterpret_cast<uint64_t>(&textures[n]);
        tables.slice = SLICE;
    }
};

/* Calls gather with images and tables in arrays or in textures. cloud: NULL for gathers over mSR. */
template <class Gather>
void with_images(const lr_cuda_layout &layout, const cpu_images &images, const lr_cuda_cloud *cloud,
                 const Gather &gather)
{
    lr_cuda_images all = {};
    all.map = images.map;
    all.source = reinterpret_cast<const float4 *>(images.source);
    all.target = reinterpret_cast<float4 *>(images.target);
    if (!images.in_textures) {
        gather(arrays_of(layout, all, cloud));
        return;
    }
    const int *extent = layout.extent;
    stand_in_texture source = {const_cast<char *>(reinterpret_cast<const char *>(images.source)),
                               {extent[0], extent[1], extent[2]},
                               (int)sizeof(float4)};
    stand_in_texture target = source;
    target.texels = reinterpret_cast<char *>(images.target);
    all.source_texture = reinterpret_cast<uint64_t>(&source);
    all.target_surface = reinterpret_cast<uint64_t>(&target);

    table_textures copies;
    copies.put(LR_CUDA_MAP, images.map, (int64_t)extent[1] * extent[2], extent[1]);
    if (cloud != nullptr) {
        copies.put(LR_CUDA_POINTS, cloud->points, cloud->num_points, LR_CUDA_LIST_WIDTH);
        copies.put(LR_CUDA_FACTORS, cloud->factors, cloud->num_points, LR_CUDA_LIST_WIDTH);
        copies.put(LR_CUDA_PROFILES, cloud->profiles, (int64_t)cloud->num_rows * cloud->num_columns,
                   cloud->num_columns);
    }
    for (int n = 0; n < LR_CUDA_NUM_TEXTURES; n++)
        if (images.emptied >> n & 1) std::fill(copies.texels[n].begin(), copies.texels[n].end(), 0);
    all.tables = copies.tables;
    gather(textures_of(layout, all));
}

/* One block of mSRval's pass: all of its threads finish a step before any of them begins the next step. */
void fill_value_block(const lr_cuda_value_fill &fill, int block)
{
    double sums[LR_CUDA_VALUE_THREADS];
    value_share shares[LR_CUDA_VALUE_THREADS];
    for (int k = 0; k < LR_CUDA_VALUE_THREADS; k++) {
        shares[k] = value_share_at(fill, block, k);
        sums[k] = fill_values(fill, shares[k]);
    }
    for (int half = LR_CUDA_VALUE_THREADS / 2; half >= shares[0].rows; half /= 2)
        for (int k = 0; k < half; k++) sums[k] += sums[k + half];
    for (int k = 0; k < LR_CUDA_VALUE_THREADS; k++) {
        const float largest = normalise_values(fill, shares[k], sums[k % shares[k].rows]);
        *fill.peak = max(*fill.peak, largest);
    }
}

/* One block more than needed. */
dim3 blocks_for(int64_t threads)
{
    return {(unsigned)(threads / LR_CUDA_GROUP + 1)};
}

} // namespace

void on_cpu_discrepancy(lr_cuda_discrepancy pass)
{
    const int64_t texels_of_grid = (int64_t)pass.layout.quads * pass.layout.size[0] * pass.layout.size[1];
    run_kernel(discrepancies<array_memory>, blocks_for(texels_of_grid), LR_CUDA_GROUP, pass);
}

void on_cpu_change(lr_cuda_change pass)
{
    const int64_t texels_of_grid = (int64_t)pass.layout.quads * pass.layout.size[0] * pass.layout.size[1];
    run_kernel(changes<array_memory>, blocks_for(texels_of_grid), LR_CUDA_GROUP, pass);
}

void on_cpu_value_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes)
{
    for (int view = 0; view < sizes->num_views; view++) {
        for (int64_t k = 0; k < sizes->map + 100; k++) fill_map(views[view].map, k);
        for (int block = 0; block < sizes->value_blocks; block++) fill_value_block(views[view].values, block);
    }
}

void on_cpu_cloud(bool shared, bool forward, lr_cuda_cloud pass, const int32_t *points, const cpu_images *images)
{
    const std::vector<int4> list = list_of(points, pass.num_points);
    pass.points = list.data();
    with_images(pass.layout, *images, &pass, [&](const auto &both) {
        using type = std::decay_t<decltype(both)>;
        const int64_t threads = (int64_t)pass.num_lists * pass.layout.size[pass.along] * pass.layout.quads;
        if (shared)
            forward ? tiles<true>(pass, both) : tiles<false>(pass, both);
        else
            run_kernel(forward ? cloud<true, type> : cloud<false, type>, blocks_for(threads), LR_CUDA_GROUP, pass,
                       both);
    });
}

void on_cpu_gather(cpu_gather kind, bool forward, lr_cuda_gather pass, const int32_t *offsets, const cpu_images *images)
{
    const std::vector<int4> list = list_of(offsets, pass.num_offsets);
    pass.offsets = list.data();
    with_images(pass.layout, *images, nullptr, [&](const auto &both) {
        using type = std::decay_t<decltype(both)>;
        const int64_t threads = (int64_t)pass.layout.size[0] * pass.layout.size[1] *
                                (kind == CPU_VOXELS ? pass.layout.size[2] : pass.layout.quads);
        const auto kernel = kind == CPU_VOXELS ? (forward ? voxels<true, type> : voxels<false, type>)
                                               : (forward ? texels<true, type> : texels<false, type>);
        run_kernel(kernel, blocks_for(threads), LR_CUDA_GROUP, pass, both);
    });
}

void on_cpu_columns(bool forward, lr_cuda_columns pass, const lr_cuda_gather *tables, const int32_t *indices,
                    int64_t num_weights, const float *source, float *target)
{
    std::vector<float4> list(num_weights);
    pass.weights = list.data();
    const int64_t entries = (int64_t)pass.first[LR_CUDA_CLASSES] * LR_CUDA_OUTPUTS * pass.num_rows;
    run_kernel(forward ? weights<true> : weights<false>, blocks_for(entries), LR_CUDA_GROUP, pass, *tables, indices);

    const int pieces = (pass.layout.size[2] + LR_CUDA_SLICES - 1) / LR_CUDA_SLICES;
    const dim3 blocks = {(unsigned)(pass.num_places[0] - 1) / LR_CUDA_COLUMN_WARPS + 1,
                         (unsigned)(pass.num_places[1] * pieces - 1) / LR_CUDA_COLUMN_LANES + 1};
    run_kernel(forward ? columns<true> : columns<false>, blocks, {LR_CUDA_COLUMN_LANES, LR_CUDA_COLUMN_WARPS}, pass,
               reinterpret_cast<const float4 *>(source), reinterpret_cast<float4 *>(target));
}

void on_cpu_product(fft_product product, float *values, const float *spectrum)
{
    product.values = reinterpret_cast<float2 *>(values);
    product.spectrum = reinterpret_cast<const float2 *>(spectrum);
    for (int volume = 0; volume < product.volumes; volume++)
        for (int64_t bin = 0; bin < product.bins + 3; bin++) multiply_bin(product, volume, bin);
}
