/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/list_tables.h"

#include "base/log.h"

lr_status lr_cuda_place_columns(struct lr_cuda_memory *memory,
                                const struct lr_cuda_column_plan *plan,
                                struct lr_cuda_tables *tables, const int32_t **indices)
{
    const int64_t steps = plan->pass.first[LR_CUDA_CLASSES];
    const lr_cuda_column_step *list =
        lr_cuda_place(memory, steps * (int64_t)sizeof(*plan->steps), plan->steps);
    *indices = lr_cuda_place(memory, steps * LR_CUDA_OUTPUTS * 4 * (int64_t)sizeof(**indices),
                             plan->indices);
    for (int forward = 0; forward < 2; forward++) {
        lr_cuda_columns *pass = &tables->columns[forward];
        *pass = plan->pass;
        pass->steps = list;
        pass->map = tables->map;
        pass->weights = lr_cuda_place(memory, plan->num_weights * 4 * (int64_t)sizeof(float), NULL);
        if (list == NULL || *indices == NULL || pass->weights == NULL) {
            return LR_FAILED;
        }
    }
    return LR_OK;
}

/* What the device fills strips' weights and profiles from. */
static lr_status place_fill(struct lr_cuda_memory *memory, const struct lr_cuda_strip_plan *plan,
                            const struct lr_cuda_tables *tables, lr_cuda_strip_fill *fill)
{
    const lr_cuda_gather *gather = &tables->gather;
    const int64_t profiles = (int64_t)plan->num_columns * gather->num_rows;
    const int64_t columns = (int64_t)gather->layout.extent[1] * gather->layout.extent[2];
    *fill = (lr_cuda_strip_fill){.values = gather->values,
                                 .map = tables->map,
                                 .num_steps = plan->num_steps,
                                 .num_offsets = plan->num_offsets,
                                 .num_columns = plan->num_columns};
    fill->offsets =
        lr_cuda_place(memory, fill->num_steps * (int64_t)sizeof(*plan->offsets), plan->offsets);
    fill->factors =
        lr_cuda_place(memory, fill->num_offsets * (int64_t)sizeof(float), plan->factors);
    fill->columns =
        lr_cuda_place(memory, fill->num_offsets * (int64_t)sizeof(int32_t), plan->columns);
    fill->peaks = lr_cuda_place(memory, fill->num_columns * (int64_t)sizeof(int32_t), plan->peaks);
    fill->profiles = lr_cuda_place(memory, profiles * (int64_t)sizeof(float), NULL);
    fill->rows = lr_cuda_place(
        memory, (gather->num_rows > 1 ? columns : 1) * (int64_t)sizeof(*fill->rows), NULL);
    return fill->offsets && fill->factors && fill->columns && fill->peaks && fill->profiles &&
                   fill->rows
               ? LR_OK
               : LR_FAILED;
}

/* What blocks of all shapes read, both ways. */
static lr_status place_steps(struct lr_cuda_memory *memory, const struct lr_cuda_strip_plan *plan,
                             struct lr_cuda_tables *tables, lr_cuda_strip_fill fills[2])
{
    lr_cuda_strip_fill fill;
    LR_TRY(place_fill(memory, plan, tables, &fill));
    for (int forward = 0; forward < 2; forward++) {
        lr_cuda_strips *passes = tables->strips[forward];
        fill.steps =
            lr_cuda_place(memory, fill.num_steps * (int64_t)sizeof(*fill.steps), plan->steps);
        if (fill.steps == NULL) {
            return LR_FAILED;
        }
        fills[forward] = fill;
        for (int which = 0; which < LR_CUDA_STRIPS_SHAPES; which++) {
            passes[which].steps = fill.steps;
            passes[which].profiles = fill.profiles;
            passes[which].rows = fill.rows;
        }
    }
    return LR_OK;
}

lr_status lr_cuda_place_strips(struct lr_cuda_memory *memory, const struct lr_cuda_strip_plan *plan,
                               struct lr_cuda_tables *tables, lr_cuda_strip_fill fills[2])
{
    const lr_cuda_slab *slabs =
        lr_cuda_place(memory, plan->num_slabs * (int64_t)sizeof(*slabs), plan->slabs);
    for (int which = 0; which < LR_CUDA_STRIPS_SHAPES; which++) {
        lr_cuda_strips pass = plan->passes[which];
        pass.slabs = slabs;
        pass.tiles = lr_cuda_place(memory, pass.num_tiles * (int64_t)sizeof(*plan->tiles[which]),
                                   plan->tiles[which]);
        if (pass.slabs == NULL || pass.tiles == NULL) {
            return LR_FAILED;
        }
        tables->strips[0][which] = tables->strips[1][which] = pass;
    }
    return place_steps(memory, plan, tables, fills);
}

lr_status lr_cuda_place_cloud(struct lr_cuda_memory *memory,
                              const struct lr_cuda_cloud_tables *host,
                              struct lr_cuda_tables *tables)
{
    lr_cuda_cloud *pass = &tables->cloud;
    *pass = host->pass;
    pass->points =
        lr_cuda_place(memory, pass->num_points * 4 * (int64_t)sizeof(int32_t), host->points);
    pass->factors = lr_cuda_place(memory, pass->num_points * (int64_t)sizeof(float), host->factors);
    pass->profiles =
        lr_cuda_place(memory, (int64_t)pass->num_rows * pass->num_columns * (int64_t)sizeof(float),
                      host->profiles);
    pass->shift = lr_cuda_place(
        memory, pass->layout.extent[1 + pass->along] * (int64_t)sizeof(int32_t), host->shift);
    return pass->points && pass->factors && pass->profiles && pass->shift ? LR_OK : LR_FAILED;
}
