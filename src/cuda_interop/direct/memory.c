/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/memory.h"

#include "base/log.h"
#include "direct/tables.h"

#include <stddef.h>
#include <string.h>

enum { ALIGNMENT = 256 };

void *lr_cuda_place(struct lr_cuda_memory *memory, int64_t bytes, const void *data)
{
    int64_t *const taken = data != NULL ? &memory->copied_bytes : &memory->filled_bytes;
    const int64_t at = *taken;
    /* Bytes from one list to the next. */
    *taken += ((bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (memory->device == NULL) return memory;
    if (data != NULL) {
        if (memory->copied_bytes > memory->copied_room) return NULL;
        if (bytes > 0) memcpy(memory->host + at, data, (size_t)bytes);
        return memory->device + at;
    }

    return *taken <= memory->filled_room ? memory->device + memory->copied_room + at : NULL;
}

int64_t lr_cuda_memory_bytes(const struct lr_cuda_memory *memory)
{
    return memory->copied_bytes + memory->filled_bytes;
}

enum { MOST_ROWS = 8, FEW_ROWS = 2, FEW_OFFSETS = 1024 };

lr_status lr_cuda_place_values(struct lr_cuda_memory *memory, const struct lr_cuda_view_plan *plan,
                               const lr_cuda_layout *layout, lr_cuda_view_fill *fill)
{
    static const float none = 0;
    const struct lr_direct_shape *shape = &plan->shape;
    const lr_direct_tables_info *info = &shape->info;
    const lr_resolution *resolution = &shape->resolution;
    lr_cuda_map_fill *map = &fill->map;
    lr_cuda_value_fill *values = &fill->values;
    *map = (lr_cuda_map_fill){
        .epsilon_mm = info->epsilon_mm,
        .tie = LR_DIRECT_TIE,
        .layout = *layout,
        .mirrored = info->num_kernels > info->num_identifiers ? info->num_identifiers : 0,
    };
    for (int k = 0; k < 2; k++) {
        map->origin_mm[k] = info->grid.origin_mm[k];
        map->voxel_mm[k] = info->grid.voxel_mm[k];
        map->radial[k] = shape->axes[1][k];
    }

    /* Rows of a block lie side by side, so that blocks with several of them write longer runs. With few offsets that
     * gains nothing. */
    int32_t block_rows = info->num_offsets > FEW_OFFSETS ? MOST_ROWS : FEW_ROWS;
    while (block_rows / 2 >= plan->num_rows) block_rows /= 2;
    *values = (lr_cuda_value_fill){
        .second_width = resolution->asymmetric ? resolution->second_width : 0,
        .second_shift = resolution->second_shift,
        .num_offsets = (int32_t)info->num_offsets,
        .num_rows = plan->num_rows,
        .block_rows = block_rows,
        .num_samples = lr_direct_count_samples(shape),
    };
    for (int k = 0; k < 3; k++) {
        const double voxel_mm = info->grid.voxel_mm[k];
        values->tof[k] = shape->axes[0][k] * voxel_mm / info->sigma_mm[0];
        values->radial[k] = shape->axes[1][k] * voxel_mm;
        values->axial[k] = shape->axes[2][k] * voxel_mm / info->sigma_mm[2];
    }
    if (values->num_samples > 0) {
        values->first_sample_mm = resolution->measured->first_offset_mm;
        values->sample_step_mm = resolution->measured->offset_step_mm;
    }

    const int64_t number = sizeof(float), rows = values->num_rows;
    map->map = lr_cuda_place(memory, (int64_t)layout->extent[1] * layout->extent[2] * (int64_t)sizeof(*map->map), NULL);
    values->offsets = lr_cuda_place(memory, values->num_offsets * 4 * number, plan->offsets);
    values->kernels = lr_cuda_place(memory, rows * (int64_t)sizeof(*plan->kernels), plan->kernels);
    values->samples = lr_cuda_place(memory, rows * values->num_samples * number, plan->samples);
    values->values = lr_cuda_place(memory, rows * values->num_offsets * number, NULL);
    values->peak = lr_cuda_place(memory, number, &none);
    return map->map && values->offsets && values->kernels && values->samples && values->values && values->peak
               ? LR_OK
               : LR_FAILED;
}

/* --- what launches have to reach --- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

lr_cuda_fill_sizes lr_cuda_fill_sizes_of(const lr_cuda_view_fill *views, int num_views)
{
    lr_cuda_fill_sizes sizes = {.num_views = num_views};
    for (int k = 0; k < num_views; k++) {
        const lr_cuda_layout *layout = &views[k].map.layout;
        const lr_cuda_value_fill *values = &views[k].values;
        const lr_cuda_bands *pass = &views[k].bands[0];
        const int64_t blocks = (values->num_rows + values->block_rows - 1) / values->block_rows;
        sizes.map = larger(sizes.map, (int64_t)layout->extent[1] * layout->extent[2]);
        sizes.value_blocks = (int32_t)larger(sizes.value_blocks, blocks);
        if (pass->num_tiles > 0 && pass->num_rows == 1) {
            const int64_t steps = views[k].band_fills[0].num_steps + 1;
            sizes.weights = larger(sizes.weights, steps * LR_CUDA_BAND_ROWS * LR_CUDA_BAND_BLOCK);
        } else if (pass->num_tiles > 0) {
            sizes.spans = larger(sizes.spans, (int64_t)pass->num_spans * pass->num_rows * pass->span_pitch);
            sizes.kernels = larger(sizes.kernels, (int64_t)pass->num_kernel_rows * pass->kernel_pitch);
        }
    }
    return sizes;
}

enum { NUMBER = sizeof(int32_t) };

lr_status lr_cuda_place_bands(struct lr_cuda_memory *memory, const struct lr_cuda_band_plan *plan,
                              lr_cuda_view_fill *fill, lr_cuda_bands bands[2][LR_CUDA_BANDS_SHAPES])
{
    lr_cuda_bands lists = plan->passes[LR_CUDA_BANDS_ALONE];
    /* Lists that blocks of all shapes read, forward and back. */
    const int64_t steps = plan->num_steps + 2;
    lists.steps = lr_cuda_place(memory, (steps + 1) * (int64_t)sizeof(*plan->steps), plan->steps);
    lists.spots = lr_cuda_place(memory, steps * (int64_t)sizeof(*plan->spots), plan->spots);
    lists.lists = lr_cuda_place(memory, lists.num_lists * 4 * NUMBER, plan->lists);
    lists.cuts = lr_cuda_place(memory, lists.num_lists * lists.num_cuts * 2 * NUMBER, plan->cuts);
    lists.tiles = lr_cuda_place(memory, plan->num_tiles * 2 * NUMBER, plan->tiles);
    lists.bases = lr_cuda_place(memory, lists.num_lattice_rows * 4 * NUMBER, plan->bases);
    LR_TRY(lists.steps && lists.spots && lists.lists && lists.cuts && lists.tiles && lists.bases ? LR_OK : LR_FAILED);

    /* Lists that the device fills, forward and back, and their sources. */
    const int64_t kernels = (int64_t)lists.num_kernel_rows * lists.kernel_pitch;
    lr_cuda_band_fill both = {.values = fill->values.values,
                              .map = fill->map.map,
                              .peak = fill->values.peak,
                              .num_steps = plan->num_steps,
                              .num_offsets = fill->values.num_offsets};
    both.places = lr_cuda_place(memory, plan->num_steps * (int64_t)sizeof(*plan->places), plan->places);
    both.ranges = lr_cuda_place(memory, lists.num_spans * 2 * NUMBER, plan->ranges);
    both.offsets = lr_cuda_place(memory, plan->num_places * NUMBER, plan->offsets);
    both.kernels = lr_cuda_place(memory, lists.num_rows > 1 ? kernels * NUMBER : 0, NULL);
    LR_TRY(both.places && both.ranges && both.offsets && both.kernels ? LR_OK : LR_FAILED);

    for (int forward = 0; forward < 2; forward++) {
        /* Weights of one direction: blocks of the one kernel, or spans. */
        const int64_t blocks = (int64_t)(plan->num_steps + 1) * LR_CUDA_BAND_ROWS;
        const int64_t entries = (int64_t)lists.num_spans * lists.num_rows * lists.span_pitch;
        void *const weights =
            lr_cuda_place(memory, (lists.num_rows == 1 ? blocks * LR_CUDA_BAND_BLOCK * 4 : entries) * NUMBER, NULL);
        lr_cuda_band_fill *own = &fill->band_fills[forward];
        *own = both;
        own->weights = weights;
        own->spans = weights;
        LR_TRY(weights != NULL ? LR_OK : LR_FAILED);

        const int32_t *tiles = (const int32_t *)lists.tiles; /* tiles of all shapes are consecutive */
        for (int which = 0; which < LR_CUDA_BANDS_SHAPES; which++) {
            lr_cuda_bands *pass = &bands[forward][which];
            *pass = plan->passes[which];
            pass->steps = lists.steps;
            pass->spots = lists.spots;
            pass->lists = lists.lists;
            pass->cuts = lists.cuts;
            pass->tiles = (const int2 *)tiles;
            pass->bases = lists.bases;
            pass->weights = own->weights;
            pass->spans = own->spans;
            pass->kernels = own->kernels;
            pass->peak = own->peak;
            tiles += 2 * (int64_t)pass->num_tiles;
        }
        fill->bands[forward] = bands[forward][LR_CUDA_BANDS_ALONE];
    }
    return LR_OK;
}

lr_status lr_cuda_place_columns(struct lr_cuda_memory *memory, const struct lr_cuda_column_plan *plan,
                                struct lr_cuda_tables *tables, const int32_t **indices)
{
    const int64_t steps = plan->pass.first[LR_CUDA_CLASSES];
    const lr_cuda_column_step *list = lr_cuda_place(memory, steps * (int64_t)sizeof(*plan->steps), plan->steps);
    *indices = lr_cuda_place(memory, steps * LR_CUDA_OUTPUTS * 4 * (int64_t)sizeof(**indices), plan->indices);
    for (int forward = 0; forward < 2; forward++) {
        lr_cuda_columns *pass = &tables->columns[forward];
        *pass = plan->pass;
        pass->steps = list;
        pass->map = tables->map;
        pass->weights = lr_cuda_place(memory, plan->num_weights * 4 * (int64_t)sizeof(float), NULL);
        if (list == NULL || *indices == NULL || pass->weights == NULL) return LR_FAILED;
    }
    return LR_OK;
}

lr_status lr_cuda_place_cloud(struct lr_cuda_memory *memory, const struct lr_cuda_cloud_tables *host,
                              struct lr_cuda_tables *tables)
{
    lr_cuda_cloud *pass = &tables->cloud;
    *pass = host->pass;
    pass->points = lr_cuda_place(memory, pass->num_points * 4 * (int64_t)sizeof(int32_t), host->points);
    pass->factors = lr_cuda_place(memory, pass->num_points * (int64_t)sizeof(float), host->factors);
    pass->profiles =
        lr_cuda_place(memory, (int64_t)pass->num_rows * pass->num_columns * (int64_t)sizeof(float), host->profiles);
    pass->shift = lr_cuda_place(memory, pass->layout.extent[1 + pass->along] * (int64_t)sizeof(int32_t), host->shift);
    return pass->points && pass->factors && pass->profiles && pass->shift ? LR_OK : LR_FAILED;
}
