/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/values.h"

#include "direct/tables.h"

enum { MOST_ROWS = 8, FEW_ROWS = 2, FEW_OFFSETS = 1024 };

static lr_cuda_map_fill describe_map(const struct lr_direct_shape *shape, const lr_cuda_layout *layout)
{
    const lr_direct_tables_info *info = &shape->info;
    lr_cuda_map_fill fill = {
        .epsilon_mm = info->epsilon_mm,
        .tie = LR_DIRECT_TIE,
        .layout = *layout,
        .mirrored = info->num_kernels > info->num_identifiers ? info->num_identifiers : 0,
    };
    for (int k = 0; k < 2; k++) {
        fill.origin_mm[k] = info->grid.origin_mm[k];
        fill.voxel_mm[k] = info->grid.voxel_mm[k];
        fill.radial[k] = shape->axes[1][k];
    }
    return fill;
}

/* Rows lie side by side: blocks that have several write longer runs. Where there are few offsets, that is
 * nothing, and threads have one or two each. */
static int32_t find_block_rows(int rows, int64_t offsets)
{
    int32_t most = offsets > FEW_OFFSETS ? MOST_ROWS : FEW_ROWS;
    while (most / 2 >= rows) most /= 2;
    return most;
}

static lr_cuda_value_fill describe_values(const struct lr_cuda_view_plan *plan)
{
    const lr_direct_tables_info *info = &plan->shape.info;
    const lr_resolution *resolution = &plan->shape.resolution;
    lr_cuda_value_fill fill = {
        .second_width = resolution->asymmetric ? resolution->second_width : 0,
        .second_shift = resolution->second_shift,
        .num_offsets = (int32_t)info->num_offsets,
        .num_rows = plan->num_rows,
        .block_rows = find_block_rows(plan->num_rows, info->num_offsets),
        .num_samples = lr_direct_count_samples(&plan->shape),
    };
    for (int k = 0; k < 3; k++) {
        const double voxel_mm = info->grid.voxel_mm[k];
        fill.tof[k] = plan->shape.axes[0][k] * voxel_mm / info->sigma_mm[0];
        fill.radial[k] = plan->shape.axes[1][k] * voxel_mm;
        fill.axial[k] = plan->shape.axes[2][k] * voxel_mm / info->sigma_mm[2];
    }
    if (fill.num_samples > 0) {
        fill.first_sample_mm = resolution->measured->first_offset_mm;
        fill.sample_step_mm = resolution->measured->offset_step_mm;
    }
    return fill;
}

lr_status lr_cuda_place_values(struct lr_cuda_memory *memory, const struct lr_cuda_view_plan *plan,
                               const lr_cuda_layout *layout, lr_cuda_view_fill *fill)
{
    static const float none = 0;
    lr_cuda_map_fill *map = &fill->map;
    lr_cuda_value_fill *values = &fill->values;
    *map = describe_map(&plan->shape, layout);
    *values = describe_values(plan);
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

static int32_t count_blocks(const lr_cuda_value_fill *fill)
{
    return (fill->num_rows + fill->block_rows - 1) / fill->block_rows;
}

static void reach_bands(const lr_cuda_view_fill *view, lr_cuda_fill_sizes *sizes)
{
    const lr_cuda_bands *pass = &view->bands[0];
    if (pass->num_tiles == 0) return;
    if (pass->num_rows == 1) {
        sizes->weights = larger(sizes->weights,
                                (int64_t)(view->band_fills[0].num_steps + 1) * LR_CUDA_BAND_ROWS * LR_CUDA_BAND_BLOCK);
        return;
    }
    sizes->spans = larger(sizes->spans, (int64_t)pass->num_spans * pass->num_rows * pass->span_pitch);
    sizes->kernels = larger(sizes->kernels, (int64_t)pass->num_kernel_rows * pass->kernel_pitch);
}

lr_cuda_fill_sizes lr_cuda_fill_sizes_of(const lr_cuda_view_fill *views, int num_views)
{
    lr_cuda_fill_sizes sizes = {.num_views = num_views};
    for (int k = 0; k < num_views; k++) {
        const lr_cuda_layout *layout = &views[k].map.layout;
        sizes.map = larger(sizes.map, (int64_t)layout->extent[1] * layout->extent[2]);
        sizes.value_blocks = (int32_t)larger(sizes.value_blocks, count_blocks(&views[k].values));
        reach_bands(&views[k], &sizes);
    }
    return sizes;
}
