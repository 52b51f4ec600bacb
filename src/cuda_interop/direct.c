/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `cuda` backend of the family `direct`: images and tables are those of render/, on which CUDA
 * projects and updates in place. */
#include "render/direct.h"
#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/direct_cloud.h"
#include "cuda_interop/direct_launch.h"
#include "cuda_interop/direct_plan.h"
#include "cuda_interop/direct_strips.h"
#include "cuda_interop/direct_updates.h"
#include "cuda_interop/lend.h"
#include "cuda_interop/streams.h"
#include "cuda_interop/watch.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

/* Tables of a view in the device's memory; none until `is_there`. */
struct cuda_tables {
    bool is_there;
    lr_cuda_gather gather;
    lr_cuda_columns columns[2]; /* back, forward */
    lr_cuda_strips strips[2];   /* the same; no tiles: this kernel goes by columns */
    lr_cuda_cloud cloud;
    uint16_t *map;
    void *owned[16];
    int num_owned;
};

struct cuda_direct {
    struct lr_direct_compute *compute;
    struct cuda_tables *tables; /* [num_views] */
    struct lr_cuda_streams streams;
    struct lr_cuda_watch projections, updates;
    char name[256];
};

static const lr_log *log_of(const struct cuda_direct *cuda)
{
    return cuda->compute->params.log;
}

/* --- memory of the device --- */

static void free_tables(struct cuda_tables *tables)
{
    for (int k = 0; k < tables->num_owned; k++) {
        cudaFree(tables->owned[k]);
    }
    *tables = (struct cuda_tables){0};
}

/* Bytes on the device, from the host where data is not NULL; NULL, logged. */
static void *place(struct cuda_tables *tables, int64_t bytes, const void *data, const lr_log *log)
{
    void *memory = NULL;
    if (lr_cuda_check((int)cudaMalloc(&memory, (size_t)bytes), "look-up tables", log) != LR_OK) {
        return NULL;
    }
    tables->owned[tables->num_owned++] = memory;
    const cudaError_t error = data != NULL
                                  ? cudaMemcpy(memory, data, (size_t)bytes, cudaMemcpyHostToDevice)
                                  : cudaSuccess;
    return lr_cuda_check((int)error, "look-up tables", log) == LR_OK ? memory : NULL;
}

/* --- tables --- */

/* LORmap, mSR and mSRval as OpenGL has built them, into memory that stays CUDA's. */
static lr_status copy_taken(struct cuda_tables *tables, const struct lr_cuda_object objects[3],
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

static lr_status copy_tables(struct cuda_direct *cuda, struct cuda_tables *tables, int view)
{
    const struct lr_direct_view_tables *from = lr_direct_open_tables(cuda->compute, view);
    if (from == NULL) {
        return LR_FAILED;
    }
    const struct lr_cuda_object objects[3] = {
        {.texture = from->map}, {.buffer = from->offsets}, {.buffer = from->values}};
    tables->gather = (lr_cuda_gather){.layout = lr_cuda_layout_of(cuda->compute),
                                      .num_offsets = from->num_offsets,
                                      .num_rows = from->num_rows};
    LR_TRY(lr_cuda_take(objects, 3, cuda->compute->ctx));
    const lr_status status = copy_taken(tables, objects, log_of(cuda));
    const lr_status back = lr_cuda_give(objects, 3, cuda->compute->ctx);
    return status != LR_OK ? status : back;
}

static lr_status make_columns(struct cuda_direct *cuda, struct cuda_tables *tables,
                              const struct lr_cuda_plan *plan)
{
    const lr_log *log = log_of(cuda);
    const int64_t steps = plan->pass.first[LR_CUDA_CLASSES];
    const lr_cuda_step *list =
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
        LR_TRY(lr_cuda_check(lr_cuda_launch_weights(forward != 0, pass, &tables->gather, indices),
                             "weights", log));
    }
    return LR_OK;
}

/* Weights and lists of strips that a multiprocessor has the memory for. */
static lr_status make_strips(struct cuda_direct *cuda, struct cuda_tables *tables,
                             const struct lr_cuda_strip_plan *plan)
{
    const lr_log *log = log_of(cuda);
    const lr_cuda_strips *host = &plan->pass;
    const int64_t entries = host->num_entries, singles = host->num_singles;
    const lr_cuda_strip_step *steps = place(
        tables, (plan->first[host->num_slabs] + 1) * (int64_t)sizeof(*steps), plan->steps, log);
    const int32_t *first =
        place(tables, (host->num_slabs + 1) * (int64_t)sizeof(*first), plan->first, log);
    const int2 *tiles =
        place(tables, host->num_tiles * (int64_t)sizeof(*plan->tiles), plan->tiles, log);
    const int4 *offsets =
        place(tables, (entries + singles) * (int64_t)sizeof(*plan->entries), plan->entries, log);
    for (int forward = 0; forward < 2; forward++) {
        lr_cuda_strips *pass = &tables->strips[forward];
        *pass = *host;
        pass->steps = steps;
        pass->first = first;
        pass->tiles = tiles;
        pass->map = tables->map;
        pass->weights = place(tables, (entries + 1) * host->num_rows * 16, NULL, log);
        pass->singles = place(tables, (singles + 1) * host->num_rows * 4, NULL, log);
        if (!steps || !first || !tiles || !offsets || !pass->weights || !pass->singles) {
            return LR_FAILED;
        }
        LR_TRY(lr_cuda_check(
            lr_cuda_launch_strip_weights(forward != 0, pass, &tables->gather, offsets), "weights",
            log));
    }
    return LR_OK;
}

static lr_status make_cloud(struct cuda_direct *cuda, struct cuda_tables *tables,
                            const struct lr_cuda_cloud_tables *host)
{
    const lr_log *log = log_of(cuda);
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

/* Bytes that a block may have of a multiprocessor's shared memory. */
static int64_t shared_room(void)
{
    int device = 0, most = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    return most;
}

static lr_status add_cloud(struct cuda_direct *cuda, struct cuda_tables *tables,
                           const struct lr_direct_shape *shape)
{
    const lr_cuda_gather *gather = &tables->gather;
    struct lr_cuda_cloud_tables cloud;
    LR_TRY(lr_cuda_cloud_init(&cloud, shape, &gather->layout, gather->num_rows, log_of(cuda)));
    const lr_status status = make_cloud(cuda, tables, &cloud);
    lr_cuda_cloud_finish(&cloud);
    return status;
}

static lr_status add_columns(struct cuda_direct *cuda, struct cuda_tables *tables,
                             const struct lr_direct_shape *shape)
{
    const lr_cuda_gather *gather = &tables->gather;
    struct lr_cuda_plan plan;
    LR_TRY(lr_cuda_plan_init(&plan, shape, &gather->layout, gather->num_rows, log_of(cuda)));
    const lr_status status = make_columns(cuda, tables, &plan);
    lr_cuda_plan_finish(&plan);
    return status;
}

/* Columns, where a slab is too wide. */
static lr_status add_strips(struct cuda_direct *cuda, struct cuda_tables *tables,
                            const struct lr_direct_shape *shape)
{
    struct lr_cuda_strip_plan plan;
    LR_TRY(lr_cuda_strip_plan_init(&plan,
                                   &(struct lr_cuda_strip_params){.shape = shape,
                                                                  .layout = &tables->gather.layout,
                                                                  .rows = tables->gather.num_rows,
                                                                  .log = log_of(cuda)}));
    const lr_status status = plan.pass.bytes <= shared_room() ? make_strips(cuda, tables, &plan)
                                                              : add_columns(cuda, tables, shape);
    lr_cuda_strip_plan_finish(&plan);
    return status;
}

static lr_status add_variant(struct cuda_direct *cuda, struct cuda_tables *tables,
                             const struct lr_direct_shape *shape)
{
    switch (cuda->compute->params.variant) {
    case LR_DIRECT_STRIPS:
        return add_strips(cuda, tables, shape);
    case LR_DIRECT_COLUMNS:
        return add_columns(cuda, tables, shape);
    case LR_DIRECT_SHARED_MEMORY:
    case LR_DIRECT_TEXTURE_CACHE:
        return add_cloud(cuda, tables, shape);
    case LR_DIRECT_THREADS:
    case LR_DIRECT_INSTRUCTIONS:
        break;
    }
    return LR_OK;
}

static lr_status make_tables(struct cuda_direct *cuda, struct cuda_tables *tables, int view)
{
    const struct lr_direct_backend_params *params = &cuda->compute->params;
    struct lr_direct_shape shape;
    LR_TRY(copy_tables(cuda, tables, view));
    LR_TRY(lr_direct_shape_init(&shape, &(lr_direct_tables_params){.grid = &params->grid,
                                                                   .view = params->views[view],
                                                                   .kernel = params->kernel,
                                                                   .log = params->log}));
    const lr_status status = add_variant(cuda, tables, &shape);
    lr_direct_shape_finish(&shape);
    return status;
}

/* OpenGL makes its part of them, and projections of any stream may read them at once. */
static lr_status make_current_tables(struct cuda_direct *cuda, struct cuda_tables *tables, int view)
{
    struct gl_context *ctx = cuda->compute->ctx;
    LR_TRY(gl_context_make_current(ctx));
    const lr_status status = make_tables(cuda, tables, view);
    gl_context_release(ctx);
    LR_TRY(status);
    return lr_cuda_check((int)cudaStreamSynchronize(NULL), "look-up tables", log_of(cuda));
}

static const struct cuda_tables *open_tables(struct cuda_direct *cuda, int view)
{
    struct cuda_tables *tables = &cuda->tables[view];
    if (!tables->is_there) {
        if (make_current_tables(cuda, tables, view) != LR_OK) {
            free_tables(tables);
            return NULL;
        }
        tables->is_there = true;
    }
    return tables;
}

/* --- projections --- */

static lr_status check_shared(const struct cuda_direct *cuda, const lr_cuda_cloud *pass)
{
    const int64_t bytes = lr_cuda_shared_bytes(pass), most = shared_room();
    return bytes <= most ? LR_OK
                         : lr_error(log_of(cuda), LR_USAGE,
                                    "a block of the shared-memory scheme needs %lld KiB and %s has "
                                    "%lld: take another variant for so long a kernel",
                                    (long long)(bytes >> 10), cuda->name, (long long)(most >> 10));
}

static lr_status launch(struct cuda_direct *cuda, const struct cuda_tables *tables, bool forward,
                        const lr_cuda_images *images)
{
    const lr_direct_variant variant = cuda->compute->params.variant;
    int error = 0;
    switch (variant) {
    case LR_DIRECT_THREADS:
    case LR_DIRECT_INSTRUCTIONS:
        error =
            lr_cuda_launch_gather(variant == LR_DIRECT_THREADS ? LR_CUDA_VOXELS : LR_CUDA_TEXELS,
                                  forward, &tables->gather, images);
        break;
    case LR_DIRECT_SHARED_MEMORY:
        LR_TRY(check_shared(cuda, &tables->cloud));
        error = lr_cuda_launch_cloud(true, forward, &tables->cloud, images);
        break;
    case LR_DIRECT_TEXTURE_CACHE:
        error = lr_cuda_launch_cloud(false, forward, &tables->cloud, images);
        break;
    case LR_DIRECT_STRIPS:
        error = tables->strips[forward].num_tiles > 0
                    ? lr_cuda_launch_strips(forward, &tables->strips[forward], images)
                    : lr_cuda_launch_columns(forward, &tables->columns[forward], images);
        break;
    case LR_DIRECT_COLUMNS:
        error = lr_cuda_launch_columns(forward, &tables->columns[forward], images);
        break;
    }
    return lr_cuda_check(error, forward ? "a forward projection" : "a back projection",
                         log_of(cuda));
}

static lr_status open_images(const struct cuda_direct *cuda, const struct lr_direct_image *source,
                             const struct lr_direct_image *target, lr_cuda_images *images)
{
    const lr_log *log = log_of(cuda);
    const struct lr_cuda_object objects[2] = {{source->texture, source->buffer},
                                              {target->texture, target->buffer}};
    *images = (lr_cuda_images){0};
    LR_TRY(lr_cuda_take(objects, 2, cuda->compute->ctx));
    if (source->texture != NULL) {
        images->source_texture = lr_cuda_texture(&objects[0], log);
        images->target_surface = lr_cuda_surface(&objects[1], log);
        return images->source_texture && images->target_surface ? LR_OK : LR_FAILED;
    }
    images->source = lr_cuda_address(&objects[0], log);
    images->target = lr_cuda_address(&objects[1], log);
    return images->source != NULL && images->target != NULL ? LR_OK : LR_FAILED;
}

static lr_status run(void *self, bool forward, int view, const struct lr_direct_image *source,
                     const struct lr_direct_image *target)
{
    struct cuda_direct *cuda = self;
    const struct cuda_tables *tables = open_tables(cuda, view);
    lr_cuda_images images;
    if (tables == NULL) {
        return LR_FAILED;
    }
    LR_TRY(open_images(cuda, source, target, &images));
    images.map = tables->map;
    return launch(cuda, tables, forward, &images);
}

static lr_status launch_task(struct cuda_direct *cuda, const lr_direct_task *task,
                             lr_cuda_images *images)
{
    const bool overlaps = cuda->compute->is_unordered && task->num_views > 1;
    lr_status status = overlaps ? lr_cuda_streams_fork(&cuda->streams, log_of(cuda)) : LR_OK;
    for (int k = 0; status == LR_OK && k < task->num_views; k++) {
        const struct cuda_tables *tables = &cuda->tables[task->views[k]];
        images->map = tables->map;
        images->stream = overlaps ? lr_cuda_streams_next(&cuda->streams) : NULL;
        status = launch(cuda, tables, task->work == LR_DIRECT_WORK_FORWARD, images);
    }
    const lr_status joined = overlaps ? lr_cuda_streams_join(&cuda->streams, log_of(cuda)) : LR_OK;
    return status != LR_OK ? status : joined;
}

static lr_status time_task(void *self, const lr_direct_task *task,
                           const struct lr_direct_image *source,
                           const struct lr_direct_image *target, double *device_seconds)
{
    struct cuda_direct *cuda = self;
    lr_cuda_images images;
    for (int k = 0; k < task->num_views; k++) {
        LR_TRY(open_tables(cuda, task->views[k]) != NULL ? LR_OK : LR_FAILED);
    }
    LR_TRY(open_images(cuda, source, target, &images));
    lr_cuda_watch_begin(&cuda->projections, log_of(cuda));
    const lr_status status = launch_task(cuda, task, &images);
    lr_cuda_watch_end(&cuda->projections, log_of(cuda));
    *device_seconds = lr_cuda_watch_read(&cuda->projections, log_of(cuda));
    return status;
}

/* --- updates --- */

static lr_status find_discrepancy(void *self, int what, const struct lr_direct_view_data *data,
                                  const struct lr_direct_image *histo)
{
    return lr_cuda_find_discrepancy(((struct cuda_direct *)self)->compute, what, data, histo);
}

static lr_status change_image(void *self, const struct lr_direct_change *change,
                              const struct lr_direct_image *image)
{
    return lr_cuda_change_image(((struct cuda_direct *)self)->compute, change, image);
}

static void begin_lap(void *self)
{
    struct cuda_direct *cuda = self;
    lr_cuda_watch_begin(&cuda->updates, log_of(cuda));
}

static void end_lap(void *self)
{
    struct cuda_direct *cuda = self;
    lr_cuda_watch_end(&cuda->updates, log_of(cuda));
}

static double read_laps(void *self)
{
    struct cuda_direct *cuda = self;
    return lr_cuda_watch_read(&cuda->updates, log_of(cuda));
}

/* --- the rest --- */

static lr_status give_back(void *self, const struct lr_direct_image *image)
{
    struct cuda_direct *cuda = self;
    const struct lr_cuda_object object = {image->texture, image->buffer};
    return lr_cuda_give(&object, 1, cuda->compute->ctx);
}

static void forget(void *self, int view)
{
    struct cuda_direct *cuda = self;
    free_tables(&cuda->tables[view]);
}

static void destroy(void *self)
{
    struct cuda_direct *cuda = self;
    for (int view = 0; cuda->tables != NULL && view < cuda->compute->params.num_views; view++) {
        free_tables(&cuda->tables[view]);
    }
    lr_cuda_watch_finish(&cuda->updates);
    lr_cuda_watch_finish(&cuda->projections);
    lr_cuda_streams_finish(&cuda->streams);
    free(cuda->tables);
    free(cuda);
}

static lr_status init(struct cuda_direct *cuda)
{
    LR_TRY(lr_cuda_open(cuda->compute->ctx, cuda->name));
    cuda->tables = lr_alloc(cuda->compute->params.num_views, sizeof(*cuda->tables),
                            "look-up tables", log_of(cuda));
    if (cuda->tables == NULL) {
        return LR_FAILED;
    }
    return lr_cuda_streams_init(&cuda->streams, log_of(cuda));
}

static void *create(struct lr_direct_compute *compute)
{
    struct cuda_direct *cuda = lr_alloc(1, sizeof(*cuda), "the cuda backend", compute->params.log);
    if (cuda == NULL) {
        return NULL;
    }
    cuda->compute = compute;
    if (init(cuda) != LR_OK) {
        destroy(cuda);
        return NULL;
    }
    return cuda;
}

lr_status lr_direct_cuda_create(const struct lr_direct_backend_params *params,
                                struct lr_direct_backend *backend)
{
    static const struct lr_direct_runner runner = {
        .name = "cuda",
        .margins = lr_cuda_plan_margins,
        .create = create,
        .run = run,
        .time = time_task,
        .discrepancy = find_discrepancy,
        .change = change_image,
        .give_back = give_back,
        .forget = forget,
        .begin_lap = begin_lap,
        .end_lap = end_lap,
        .read_laps = read_laps,
        .destroy = destroy,
    };
    if (params->variant <= LR_DIRECT_COLUMNS && params->storage != LR_DIRECT_BUFFERS) {
        return lr_error(params->log, LR_USAGE,
                        "the %s variant of cuda works on buffers, not on textures",
                        params->variant == LR_DIRECT_COLUMNS ? "columns" : "strips");
    }
    return lr_direct_compute_create_with(params, &runner, backend);
}
