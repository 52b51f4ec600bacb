/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `cuda` backend of the family `direct`: images, tables and updates are those of render/, on
 * which CUDA projects in place. */
#include "render/direct.h"
#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/direct_cloud.h"
#include "cuda_interop/direct_launch.h"
#include "cuda_interop/direct_plan.h"
#include "cuda_interop/direct_strips.h"
#include "cuda_interop/lend.h"

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
    cudaEvent_t begin, end;
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

static lr_cuda_layout layout_of(const struct lr_direct_compute *compute)
{
    const struct lr_direct_layout *from = &compute->layout;
    lr_cuda_layout layout = {.quads = from->quads};
    for (int k = 0; k < 3; k++) {
        layout.size[k] = from->size[k];
        layout.margin[k] = from->margin[k];
        layout.extent[k] = (k == 0 ? from->quads : from->size[k - 1]) + 2 * from->margin[k];
    }
    return layout;
}

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
    tables->gather = (lr_cuda_gather){.layout = layout_of(cuda->compute),
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

static const struct cuda_tables *open_tables(struct cuda_direct *cuda, int view)
{
    struct cuda_tables *tables = &cuda->tables[view];
    if (!tables->is_there) {
        if (make_tables(cuda, tables, view) != LR_OK) {
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

static lr_status run_taken(struct cuda_direct *cuda, const struct cuda_tables *tables, bool forward,
                           const struct lr_cuda_object objects[2])
{
    lr_cuda_images images = {.map = tables->map};
    if (objects[0].texture != NULL) {
        images.source_array = lr_cuda_array(&objects[0], log_of(cuda));
        images.target_array = lr_cuda_array(&objects[1], log_of(cuda));
    } else {
        images.source = lr_cuda_address(&objects[0], log_of(cuda));
        images.target = lr_cuda_address(&objects[1], log_of(cuda));
    }
    const bool are_there = (images.source_array && images.target_array) ||
                           (images.source != NULL && images.target != NULL);
    return are_there ? launch(cuda, tables, forward, &images) : LR_FAILED;
}

static lr_status run(void *self, bool forward, int view, const struct lr_direct_image *source,
                     const struct lr_direct_image *target)
{
    struct cuda_direct *cuda = self;
    const struct cuda_tables *tables = open_tables(cuda, view);
    const struct lr_cuda_object objects[2] = {{source->texture, source->buffer},
                                              {target->texture, target->buffer}};
    if (tables == NULL) {
        return LR_FAILED;
    }
    LR_TRY(lr_cuda_take(objects, 2, cuda->compute->ctx));
    const lr_status status = run_taken(cuda, tables, forward, objects);
    const lr_status back = lr_cuda_give(objects, 2, cuda->compute->ctx);
    return status != LR_OK ? status : back;
}

/* --- the rest --- */

static void forget(void *self, int view)
{
    struct cuda_direct *cuda = self;
    free_tables(&cuda->tables[view]);
}

static void start_clock(void *self)
{
    struct cuda_direct *cuda = self;
    (void)lr_cuda_check((int)cudaEventRecord(cuda->begin, NULL), "a clock", log_of(cuda));
}

static double stop_clock(void *self)
{
    struct cuda_direct *cuda = self;
    float milliseconds = 0;
    cudaError_t error = cudaEventRecord(cuda->end, NULL);
    error = error == cudaSuccess ? cudaEventSynchronize(cuda->end) : error;
    error =
        error == cudaSuccess ? cudaEventElapsedTime(&milliseconds, cuda->begin, cuda->end) : error;
    (void)lr_cuda_check((int)error, "a clock", log_of(cuda));
    return 1e-3 * (double)milliseconds;
}

static void destroy(void *self)
{
    struct cuda_direct *cuda = self;
    for (int view = 0; cuda->tables != NULL && view < cuda->compute->params.num_views; view++) {
        free_tables(&cuda->tables[view]);
    }
    if (cuda->begin != NULL) {
        cudaEventDestroy(cuda->begin);
    }
    if (cuda->end != NULL) {
        cudaEventDestroy(cuda->end);
    }
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
    LR_TRY(lr_cuda_check((int)cudaEventCreate(&cuda->begin), "a clock", log_of(cuda)));
    return lr_cuda_check((int)cudaEventCreate(&cuda->end), "a clock", log_of(cuda));
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
        .forget = forget,
        .start_clock = start_clock,
        .stop_clock = stop_clock,
        .destroy = destroy,
    };
    if (params->variant <= LR_DIRECT_COLUMNS && params->storage != LR_DIRECT_BUFFERS) {
        return lr_error(params->log, LR_USAGE,
                        "the %s variant of cuda works on buffers, not on textures",
                        params->variant == LR_DIRECT_COLUMNS ? "columns" : "strips");
    }
    return lr_direct_compute_create_with(params, &runner, backend);
}
