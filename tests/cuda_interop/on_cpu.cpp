// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
#include "stand_ins.h"

#include "cuda_interop/direct/gathers.cuh"
#include "cuda_interop/direct/updates.cu"
#include "cuda_interop/direct/values.cu"
#include "fft/cufft_product.cuh"
#include "on_cpu.h"

namespace
{

int64_t place_of(const lr_cuda_layout &layout, int q, int x, int y)
{
    return q + layout.margin[0] +
           (int64_t)layout.extent[0] *
               (x + layout.margin[1] + (int64_t)layout.extent[1] * (y + layout.margin[2]));
}

struct images {
    lr_cuda_layout layout;
    const float4 *source;
    float4 *target;

    float4 load(int q, int x, int y) const
    {
        return source[place_of(layout, q, x, y)];
    }
    void store(int q, int x, int y, float4 texel) const
    {
        target[place_of(layout, q, x, y)] = texel;
    }
    void store_slice(int q, int x, int y, int slice, float value) const
    {
        reinterpret_cast<float *>(target + place_of(layout, q, x, y))[slice] = value;
    }
};

struct lor_map {
    lr_cuda_layout layout;
    const uint16_t *entries;

    int operator()(int x, int y) const
    {
        return entries[x + layout.margin[1] + layout.extent[1] * (y + layout.margin[2])];
    }
};

template <bool Forward>
void gather(cpu_gather kind, const lr_cuda_gather &pass, const images &images, const lor_map &map)
{
    const int64_t slice = (int64_t)pass.layout.size[0] * pass.layout.size[1];
    if (kind == CPU_VOXELS) {
        for (int64_t k = 0; k < slice * pass.layout.size[2]; k++) {
            gather_voxel<Forward>(pass, images, map, k);
        }
    } else {
        for (int64_t k = 0; k < slice * pass.layout.quads; k++) {
            gather_texel<Forward>(pass, images, map, k);
        }
    }
}

template <bool Forward>
void columns(const lr_cuda_columns &pass, const lr_cuda_gather &tables, const int32_t *indices,
             const float4 *source, float4 *target)
{
    const int64_t entries = (int64_t)pass.first[LR_CUDA_CLASSES] * LR_CUDA_OUTPUTS * pass.num_rows;
    for (int64_t k = 0; k < entries; k++) {
        fill_weights<Forward>(pass, tables, indices, k);
    }
    for (int q = 0; q < pass.num_places[1]; q++) {
        for (int p = 0; p < pass.num_places[0]; p++) {
            for (int z = 0; z < pass.layout.size[2]; z += LR_CUDA_SLICES) {
                const int place[3] = {p, q, z};
                gather_columns<Forward>(pass, place, source, target);
            }
        }
    }
}

template <bool Forward>
void cloud(const lr_cuda_cloud &pass, const images &images, const lor_map &map)
{
    const int64_t threads =
        (int64_t)pass.num_lists * pass.layout.size[pass.along] * pass.layout.quads;
    for (int64_t k = 0; k < threads; k++) {
        gather_cloud<Forward>(pass, images, map, k);
    }
}

/* All threads of a block do the first half before one begins the second. */
template <bool Forward>
void tiles(const lr_cuda_cloud &pass, const images &images, const lor_map &map)
{
    const int outputs[3] = {LR_CUDA_TILE_PLACES, LR_CUDA_TILE_LISTS, LR_CUDA_TILE_QUADS};
    const int threads = outputs[0] * outputs[1] * outputs[2];
    std::vector<float4> shared(tile_texels(pass));
    for (int list = 0; list < pass.num_lists; list += outputs[1]) {
        for (int place = 0; place < pass.layout.size[pass.along]; place += outputs[0]) {
            for (int quad = 0; quad < pass.layout.quads; quad += outputs[2]) {
                const cloud_tile tile = {{place, pass.least_list + list, quad}};
                for (int k = 0; k < threads; k++) {
                    stage_tile(pass, images, tile, shared.data(), k, threads);
                }
                for (int k = 0; k < threads; k++) {
                    gather_tile<Forward>(pass, images, map, tile, shared.data(), k);
                }
            }
        }
    }
}

std::vector<int4> list_of(const int32_t *entries, int32_t count)
{
    std::vector<int4> list(count);
    for (int32_t i = 0; i < count; i++) {
        list[i] = int4{entries[4 * i], entries[4 * i + 1], entries[4 * i + 2], entries[4 * i + 3]};
    }
    return list;
}

/* A block of mSRval's pass: all of its threads go one step after the other. */
void fill_value_block(const lr_cuda_value_fill &fill, int block)
{
    double sums[LR_CUDA_VALUE_THREADS];
    value_share shares[LR_CUDA_VALUE_THREADS];
    for (int k = 0; k < LR_CUDA_VALUE_THREADS; k++) {
        shares[k] = value_share_at(fill, block, k);
        sums[k] = fill_values(fill, shares[k]);
    }
    for (int half = LR_CUDA_VALUE_THREADS / 2; half >= shares[0].rows; half /= 2) {
        for (int k = 0; k < half; k++) {
            sums[k] += sums[k + half];
        }
    }
    for (int k = 0; k < LR_CUDA_VALUE_THREADS; k++) {
        const float largest = normalise_values(fill, shares[k], sums[k % shares[k].rows]);
        *fill.peak = max(*fill.peak, largest);
    }
}

/* Threads of whole blocks. */
uint32_t count_threads(const lr_cuda_layout &layout)
{
    return (uint32_t)(layout.quads * layout.size[0] * layout.size[1] / 256 + 1) * 256;
}

} // namespace

void on_cpu_discrepancy(lr_cuda_discrepancy pass)
{
    for (uint32_t k = 0; k < count_threads(pass.layout); k++) {
        find_discrepancy<array_memory>(pass, k);
    }
}

void on_cpu_change(lr_cuda_change pass)
{
    for (uint32_t k = 0; k < count_threads(pass.layout); k++) {
        change_image<array_memory>(pass, k);
    }
}

void on_cpu_value_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes)
{
    for (int view = 0; view < sizes->num_views; view++) {
        for (int64_t k = 0; k < sizes->map + 100; k++) {
            fill_map(views[view].map, k);
        }
        for (int block = 0; block < sizes->value_blocks; block++) {
            fill_value_block(views[view].values, block);
        }
    }
}

void on_cpu_cloud(bool shared, bool forward, lr_cuda_cloud pass, const int32_t *points,
                  const uint16_t *map, const float *source, float *target)
{
    const std::vector<int4> list = list_of(points, pass.num_points);
    pass.points = list.data();
    const images both = {pass.layout, reinterpret_cast<const float4 *>(source),
                         reinterpret_cast<float4 *>(target)};
    const lor_map entries = {pass.layout, map};
    if (shared) {
        forward ? tiles<true>(pass, both, entries) : tiles<false>(pass, both, entries);
    } else {
        forward ? cloud<true>(pass, both, entries) : cloud<false>(pass, both, entries);
    }
}

void on_cpu_gather(cpu_gather kind, bool forward, lr_cuda_gather pass, const int32_t *offsets,
                   const uint16_t *map, const float *source, float *target)
{
    const std::vector<int4> list = list_of(offsets, pass.num_offsets);
    pass.offsets = list.data();
    const images both = {pass.layout, reinterpret_cast<const float4 *>(source),
                         reinterpret_cast<float4 *>(target)};
    const lor_map entries = {pass.layout, map};
    if (forward) {
        gather<true>(kind, pass, both, entries);
    } else {
        gather<false>(kind, pass, both, entries);
    }
}

void on_cpu_columns(bool forward, lr_cuda_columns pass, const lr_cuda_gather *tables,
                    const int32_t *indices, int64_t num_weights, const float *source, float *target)
{
    std::vector<float4> weights(num_weights);
    pass.weights = weights.data();
    const float4 *from = reinterpret_cast<const float4 *>(source);
    float4 *to = reinterpret_cast<float4 *>(target);
    if (forward) {
        columns<true>(pass, *tables, indices, from, to);
    } else {
        columns<false>(pass, *tables, indices, from, to);
    }
}

void on_cpu_product(fft_product product, float *values, const float *spectrum)
{
    product.values = reinterpret_cast<float2 *>(values);
    product.spectrum = reinterpret_cast<const float2 *>(spectrum);
    for (int volume = 0; volume < product.volumes; volume++) {
        for (int64_t bin = 0; bin < product.bins + 3; bin++) {
            multiply_bin(product, volume, bin);
        }
    }
}
