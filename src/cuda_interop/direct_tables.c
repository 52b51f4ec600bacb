/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct_tables.h"

#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/direct_bands.h"
#include "cuda_interop/direct_cloud.h"
#include "cuda_interop/direct_columns.h"
#include "cuda_interop/direct_launch.h"
#include "cuda_interop/direct_strips.h"
#include "cuda_interop/direct_updates.h"
#include "cuda_interop/lend.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

static const lr_log *log_of(const struct lr_cuda_table_set *set)
{
    return set->compute->params.log;
}

/* --- memory of the device --- */

/* What was launched may still read them. */
static void free_tables(struct lr_cuda_tables *tables)
{
    if (tables->num_owned > 0) {
        cudaDeviceSynchronize();
    }
    for (int k = 0; k < tables->num_owned; k++) {
        cudaFree(tables->owned[k]);
    }
    *tables = (struct lr_cuda_tables){0};
}

/* Bytes on the device, from the host where data is not NULL; NULL, logged. */
static void *place(struct lr_cuda_tables *tables, int64_t bytes, const void *data,
                   const lr_log *log)
{
    void *memory = NULL;
    if (lr_cuda_check((int)cudaMalloc(&memory, (size_t)bytes), "look-up tables", log) != LR_OK) {
        return NULL;
    }
    tables->owned[tables->num_owned++] = memory;
    tables->bytes += bytes;
    const cudaError_t error = data != NULL
                                  ? cudaMemcpy(memory, data, (size_t)bytes, cudaMemcpyHostToDevice)
                                  : cudaSuccess;
    return lr_cuda_check((int)error, "look-up tables", log) == LR_OK ? memory : NULL;
}

/* --- tables --- */

/* LORmap, mSR and mSRval as OpenGL has built them, into memory that stays CUDA's. */
static lr_status copy_taken(struct lr_cuda_tables *tables, const struct lr_cuda_object objects[3],
                            const lr_log *log)
{
    const lr_cuda_layout *layout = &tables->gather.layout;
    const int64_t row = layout->extent[1] * (int64_t)sizeof(uint16_t);
    tables->map = place(tables, row * layout->extent[2], NULL, log);
    void *const offsets = place(tables, objects[1].buffer->size_bytes, NULL, log);
    void *const values = place(tables, objects[2].buffer->size_bytes, NULL, log);
    void *const array = lr_cuda_array(&objects[0], log);
    void *const from_offsets = lr_cuda_address(&objects[1], log);
    void *const from_values = lr_cuda_address(&objects[2], log);
    if (!tables->map || !offsets || !values || !array || !from_offsets || !from_values) {
        return LR_FAILED;
    }
    LR_TRY(lr_cuda_check((int)cudaMemcpy2DFromArray(tables->map, (size_t)row, array, 0, 0,
                                                    (size_t)row, (size_t)layout->extent[2],
                                                    cudaMemcpyDeviceToDevice),
                         "LORmap", log));
    LR_TRY(
        lr_cuda_check((int)cudaMemcpy(offsets, from_offsets, (size_t)objects[1].buffer->size_bytes,
                                      cudaMemcpyDeviceToDevice),
                      "mSR", log));
    LR_TRY(lr_cuda_check((int)cudaMemcpy(values, from_values, (size_t)objects[2].buffer->size_bytes,
                                         cudaMemcpyDeviceToDevice),
                         "mSRval", log));
    tables->gather.offsets = offsets;
    tables->gather.values = values;
    return LR_OK;
}

static lr_status copy_tables(struct lr_cuda_table_set *set, struct lr_cuda_tables *tables, int view)
{
    const struct lr_direct_view_tables *from = lr_direct_open_tables(set->compute, view);
    if (from == NULL) {
        return LR_FAILED;
    }
    const struct lr_cuda_object objects[3] = {
        {.texture = from->map}, {.buffer = from->offsets}, {.buffer = from->values}};
    tables->gather = (lr_cuda_gather){.layout = lr_cuda_layout_of(set->compute),
                                      .num_offsets = from->num_offsets,
                                      .num_rows = from->num_rows};
    LR_TRY(lr_cuda_take(objects, 3, set->compute->ctx));
    const lr_status status = copy_taken(tables, objects, log_of(set));
    const lr_status back = lr_cuda_give(objects, 3, set->compute->ctx);
    return status != LR_OK ? status : back;
}

static lr_status make_columns(struct lr_cuda_table_set *set, struct lr_cuda_tables *tables,
                              const struct lr_cuda_column_plan *plan)
{
    const lr_log *log = log_of(set);
    const int64_t steps = plan->pass.first[LR_CUDA_CLASSES];
    const lr_cuda_column_step *list =
        place(tables, steps * (int64_t)sizeof(*plan->steps), plan->steps, log);
    const int32_t *indices =
        place(tables, steps * LR_CUDA_OUTPUTS * 4 * (int64_t)sizeof(*indices), plan->indices, log);
    for (int forward = 0; forward < 2; forward++) {
        lr_cuda_columns *pass = &tables->columns[forward];
        *pass = plan->pass;
        pass->steps = list;
        pass->map = tables->map;
        pass->weights = place(tables, plan->num_weights * 4 * (int64_t)sizeof(float), NULL, log);
        if (list == NULL || indices == NULL || pass->weights == NULL) {
            return LR_FAILED;
        }
        LR_TRY(lr_cuda_check(
            lr_cuda_launch_column_weights(forward != 0, pass, &tables->gather, indices), "weights",
            log));
    }
    return LR_OK;
}

/* What the device fills strips' weights and profiles from. */
static lr_status place_fill(struct lr_cuda_tables *tables, const struct lr_cuda_strip_plan *plan,
                            lr_cuda_strip_fill *fill, const lr_log *log)
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
        place(tables, fill->num_steps * (int64_t)sizeof(*plan->offsets), plan->offsets, log);
    fill->factors = place(tables, fill->num_offsets * (int64_t)sizeof(float), plan->factors, log);
    fill->columns = place(tables, fill->num_offsets * (int64_t)sizeof(int32_t), plan->columns, log);
    fill->peaks = place(tables, fill->num_columns * (int64_t)sizeof(int32_t), plan->peaks, log);
    fill->profiles = place(tables, profiles * (int64_t)sizeof(float), NULL, log);
    fill->rows = place(tables, (gather->num_rows > 1 ? columns : 1) * (int64_t)sizeof(*fill->rows),
                       NULL, log);
    return fill->offsets && fill->factors && fill->columns && fill->peaks && fill->profiles &&
                   fill->rows
               ? LR_OK
               : LR_FAILED;
}

/* What blocks of all shapes read, both ways. */
static lr_status place_steps(struct lr_cuda_tables *tables, const struct lr_cuda_strip_plan *plan,
                             const lr_log *log)
{
    lr_cuda_strip_fill fill;
    LR_TRY(place_fill(tables, plan, &fill, log));
    for (int forward = 0; forward < 2; forward++) {
        lr_cuda_strips *passes = tables->strips[forward];
        fill.steps = place(tables, fill.num_steps * (int64_t)sizeof(*fill.steps), plan->steps, log);
        if (fill.steps == NULL) {
            return LR_FAILED;
        }
        LR_TRY(lr_cuda_check(lr_cuda_launch_strip_fill(forward != 0, &passes[0], &fill), "weights",
                             log));
        for (int which = 0; which < LR_CUDA_STRIPS_SHAPES; which++) {
            passes[which].steps = fill.steps;
            passes[which].profiles = fill.profiles;
            passes[which].rows = fill.rows;
        }
    }
    return LR_OK;
}

static lr_status make_strips(struct lr_cuda_table_set *set, struct lr_cuda_tables *tables,
                             const struct lr_cuda_strip_plan *plan)
{
    const lr_log *log = log_of(set);
    const lr_cuda_slab *slabs =
        place(tables, plan->num_slabs * (int64_t)sizeof(*slabs), plan->slabs, log);
    for (int which = 0; which < LR_CUDA_STRIPS_SHAPES; which++) {
        lr_cuda_strips pass = plan->passes[which];
        pass.slabs = slabs;
        pass.tiles = place(tables, pass.num_tiles * (int64_t)sizeof(*plan->tiles[which]),
                           plan->tiles[which], log);
        if (pass.slabs == NULL || pass.tiles == NULL) {
            return LR_FAILED;
        }
        tables->strips[0][which] = tables->strips[1][which] = pass;
    }
    return place_steps(tables, plan, log);
}

static lr_status make_cloud(struct lr_cuda_table_set *set, struct lr_cuda_tables *tables,
                            const struct lr_cuda_cloud_tables *host)
{
    const lr_log *log = log_of(set);
    lr_cuda_cloud *pass = &tables->cloud;
    *pass = host->pass;
    pass->points =
        place(tables, pass->num_points * 4 * (int64_t)sizeof(int32_t), host->points, log);
    pass->factors = place(tables, pass->num_points * (int64_t)sizeof(float), host->factors, log);
    pass->profiles =
        place(tables, (int64_t)pass->num_rows * pass->num_columns * (int64_t)sizeof(float),
              host->profiles, log);
    pass->shift = place(tables, pass->layout.extent[1 + pass->along] * (int64_t)sizeof(int32_t),
                        host->shift, log);
    return pass->points && pass->factors && pass->profiles && pass->shift ? LR_OK : LR_FAILED;
}

static lr_status add_cloud(struct lr_cuda_table_set *set, struct lr_cuda_tables *tables,
                           const struct lr_direct_shape *shape)
{
    const lr_cuda_gather *gather = &tables->gather;
    struct lr_cuda_cloud_tables cloud;
    LR_TRY(lr_cuda_cloud_init(&cloud, shape, &gather->layout, gather->num_rows, log_of(set)));
    const lr_status status = make_cloud(set, tables, &cloud);
    lr_cuda_cloud_finish(&cloud);
    return status;
}

static lr_status add_columns(struct lr_cuda_table_set *set, struct lr_cuda_tables *tables,
                             const struct lr_direct_shape *shape)
{
    const lr_cuda_gather *gather = &tables->gather;
    struct lr_cuda_column_plan plan;
    LR_TRY(lr_cuda_column_plan_init(&plan, shape, &gather->layout, gather->num_rows, log_of(set)));
    const lr_status status = make_columns(set, tables, &plan);
    lr_cuda_column_plan_finish(&plan);
    return status;
}

/* Columns, where a slab is too wide. */
static lr_status add_strips(struct lr_cuda_table_set *set, struct lr_cuda_tables *tables,
                            const struct lr_direct_shape *shape)
{
    struct lr_cuda_strip_plan plan;
    LR_TRY(lr_cuda_strip_plan_init(&plan,
                                   &(struct lr_cuda_strip_params){.shape = shape,
                                                                  .layout = &tables->gather.layout,
                                                                  .rows = tables->gather.num_rows,
                                                                  .log = log_of(set)}));
    const bool works =
        lr_cuda_strips_work() && lr_cuda_strip_plan_fits(&plan, lr_cuda_shared_room());
    const lr_status status =
        works ? make_strips(set, tables, &plan) : add_columns(set, tables, shape);
    lr_cuda_strip_plan_finish(&plan);
    return status;
}

/* What blocks read, both ways. */
static lr_status place_bands(struct lr_cuda_tables *tables, const struct lr_cuda_band_plan *plan,
                             lr_cuda_bands *pass, const lr_log *log)
{
    const int64_t number = sizeof(int32_t), steps = plan->num_steps + 2;
    *pass = plan->passes[LR_CUDA_BANDS_ALONE];
    pass->steps = place(tables, (steps + 1) * (int64_t)sizeof(*plan->steps), plan->steps, log);
    pass->spots = place(tables, steps * (int64_t)sizeof(*plan->spots), plan->spots, log);
    pass->lists = place(tables, pass->num_lists * 4 * number, plan->lists, log);
    pass->tiles = place(tables, plan->num_tiles * 2 * number, plan->tiles, log);
    pass->bases = place(tables, pass->num_lattice_rows * 2 * number, plan->bases, log);
    return pass->steps && pass->spots && pass->lists && pass->tiles && pass->bases ? LR_OK
                                                                                   : LR_FAILED;
}

/* What the device fills, both ways, and from what. */
static lr_status place_band_fill(struct lr_cuda_tables *tables,
                                 const struct lr_cuda_band_plan *plan, lr_cuda_band_fill *fill,
                                 const lr_log *log)
{
    const lr_cuda_bands *pass = &plan->passes[LR_CUDA_BANDS_ALONE];
    const int64_t number = sizeof(int32_t);
    const int64_t kernels = (int64_t)pass->num_kernel_rows * pass->kernel_pitch;
    *fill = (lr_cuda_band_fill){.values = tables->gather.values,
                                .map = tables->map,
                                .num_steps = plan->num_steps,
                                .num_offsets = tables->gather.num_offsets};
    fill->places =
        place(tables, plan->num_steps * (int64_t)sizeof(*plan->places), plan->places, log);
    fill->ranges = place(tables, pass->num_spans * 2 * number, plan->ranges, log);
    fill->offsets = place(tables, plan->num_places * number, plan->offsets, log);
    fill->kernels = place(tables, (pass->num_rows > 1 ? kernels : 1) * number, NULL, log);
    fill->peak = place(tables, number, NULL, log);
    return fill->places && fill->ranges && fill->offsets && fill->kernels && fill->peak ? LR_OK
                                                                                        : LR_FAILED;
}

/* Weights of one way. */
static lr_status fill_bands(struct lr_cuda_tables *tables, bool forward, lr_cuda_band_fill *fill,
                            const lr_log *log)
{
    lr_cuda_bands *pass = &tables->bands[forward][LR_CUDA_BANDS_ALONE];
    const int64_t number = sizeof(int32_t);
    const int64_t blocks = (fill->num_steps + 1) * LR_CUDA_BAND_ROWS;
    const int64_t entries = (int64_t)pass->num_spans * pass->num_rows * pass->span_pitch;
    void *const weights = place(
        tables, pass->num_rows == 1 ? blocks * LR_CUDA_BAND_BLOCK * 4 * number : entries * number,
        NULL, log);
    if (weights == NULL) {
        return LR_FAILED;
    }
    pass->weights = fill->weights = weights;
    pass->spans = fill->spans = weights;
    pass->kernels = fill->kernels;
    pass->peak = fill->peak;
    return lr_cuda_check(lr_cuda_launch_band_fill(forward, pass, fill), "weights", log);
}

/* What blocks of the other shape have of their own beside the tables of all. */
static void share_bands(struct lr_cuda_tables *tables, const struct lr_cuda_band_plan *plan)
{
    const lr_cuda_bands *own = &plan->passes[LR_CUDA_BANDS_BESIDE];
    for (int forward = 0; forward < 2; forward++) {
        const lr_cuda_bands *alone = &tables->bands[forward][LR_CUDA_BANDS_ALONE];
        lr_cuda_bands *pass = &tables->bands[forward][LR_CUDA_BANDS_BESIDE];
        *pass = *alone;
        pass->tiles = alone->tiles + alone->num_tiles;
        pass->num_tiles = own->num_tiles;
        pass->sides = own->sides;
        pass->is_crowded = own->is_crowded;
        pass->depth = own->depth;
        pass->width = own->width;
        pass->slab_bytes = own->slab_bytes;
        pass->bytes = own->bytes;
    }
}

static lr_status make_bands(struct lr_cuda_table_set *set, struct lr_cuda_tables *tables,
                            const struct lr_cuda_band_plan *plan)
{
    const lr_log *log = log_of(set);
    lr_cuda_band_fill fill;
    LR_TRY(place_bands(tables, plan, &tables->bands[0][LR_CUDA_BANDS_ALONE], log));
    LR_TRY(place_band_fill(tables, plan, &fill, log));
    tables->bands[1][LR_CUDA_BANDS_ALONE] = tables->bands[0][LR_CUDA_BANDS_ALONE];
    LR_TRY(fill_bands(tables, false, &fill, log));
    LR_TRY(fill_bands(tables, true, &fill, log));
    share_bands(tables, plan);
    return LR_OK;
}

/* Strips, where a slab is too wide. */
static lr_status add_bands(struct lr_cuda_table_set *set, struct lr_cuda_tables *tables,
                           const struct lr_direct_shape *shape)
{
    const lr_cuda_gather *gather = &tables->gather;
    struct lr_cuda_band_plan plan;
    LR_TRY(lr_cuda_band_plan_init(&plan, shape, &gather->layout, gather->num_rows, log_of(set)));
    const bool works = lr_cuda_bands_work() && lr_cuda_band_plan_fits(&plan, lr_cuda_shared_room());
    const lr_status status =
        works ? make_bands(set, tables, &plan) : add_strips(set, tables, shape);
    lr_cuda_band_plan_finish(&plan);
    return status;
}

static lr_status add_variant(struct lr_cuda_table_set *set, struct lr_cuda_tables *tables,
                             const struct lr_direct_shape *shape)
{
    switch (set->compute->params.variant) {
    case LR_DIRECT_BANDS:
        return add_bands(set, tables, shape);
    case LR_DIRECT_STRIPS:
        return add_strips(set, tables, shape);
    case LR_DIRECT_COLUMNS:
        return add_columns(set, tables, shape);
    case LR_DIRECT_SHARED_MEMORY:
    case LR_DIRECT_TEXTURE_CACHE:
        return add_cloud(set, tables, shape);
    case LR_DIRECT_THREADS:
    case LR_DIRECT_INSTRUCTIONS:
        break;
    }
    return LR_OK;
}

static lr_status make_tables(struct lr_cuda_table_set *set, struct lr_cuda_tables *tables, int view)
{
    const struct lr_direct_backend_params *params = &set->compute->params;
    struct lr_direct_shape shape;
    LR_TRY(copy_tables(set, tables, view));
    LR_TRY(lr_direct_shape_init(&shape, &(lr_direct_tables_params){.grid = &params->grid,
                                                                   .view = params->views[view],
                                                                   .kernel = params->kernel,
                                                                   .log = params->log}));
    const lr_status status = add_variant(set, tables, &shape);
    lr_direct_shape_finish(&shape);
    return status;
}

/* OpenGL makes its part of them, and projections of any stream may read them at once. */
static lr_status make_current_tables(struct lr_cuda_table_set *set, struct lr_cuda_tables *tables,
                                     int view)
{
    struct gl_context *ctx = set->compute->ctx;
    LR_TRY(gl_context_make_current(ctx));
    const lr_status status = make_tables(set, tables, view);
    gl_context_release(ctx);
    LR_TRY(status);
    return lr_cuda_check((int)cudaStreamSynchronize(NULL), "look-up tables", log_of(set));
}

static void make_room(struct lr_cuda_table_set *set)
{
    if (set->bytes + set->view_bytes <= set->room_bytes) {
        return;
    }
    for (int view = 0; view < set->compute->params.num_views; view++) {
        lr_cuda_forget_tables(set, view);
    }
}

const struct lr_cuda_tables *lr_cuda_open_tables(struct lr_cuda_table_set *set, int view)
{
    struct lr_cuda_tables *tables = &set->views[view];
    if (tables->is_there) {
        return tables;
    }
    make_room(set);
    if (make_current_tables(set, tables, view) != LR_OK) {
        free_tables(tables);
        return NULL;
    }
    tables->is_there = true;
    set->view_bytes = tables->bytes;
    set->bytes += tables->bytes;
    return tables;
}

void lr_cuda_forget_tables(struct lr_cuda_table_set *set, int view)
{
    struct lr_cuda_tables *tables = &set->views[view];
    set->bytes -= tables->bytes;
    free_tables(tables);
}

/* --- all views --- */

lr_status lr_cuda_table_set_init(struct lr_cuda_table_set *set, struct lr_direct_compute *compute)
{
    const struct lr_direct_backend_params *params = &compute->params;
    size_t free_bytes = 0, all_bytes = 0;
    *set = (struct lr_cuda_table_set){.compute = compute, .room_bytes = params->max_memory_bytes};
    if (set->room_bytes == 0) {
        LR_TRY(lr_cuda_check((int)cudaMemGetInfo(&free_bytes, &all_bytes), "the device's memory",
                             params->log));
        set->room_bytes = (int64_t)(free_bytes / 4);
    }
    set->views = lr_alloc(params->num_views, sizeof(*set->views), "look-up tables", params->log);
    return set->views != NULL ? LR_OK : LR_FAILED;
}

void lr_cuda_table_set_finish(struct lr_cuda_table_set *set)
{
    for (int view = 0; set->views != NULL && view < set->compute->params.num_views; view++) {
        free_tables(&set->views[view]);
    }
    free(set->views);
    *set = (struct lr_cuda_table_set){0};
}
