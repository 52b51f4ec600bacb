/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/direct/direct.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "render/direct/update.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_GROUPS = 32768, FLOATS = 4 };

/* --- tables --- */

static int64_t memory_limit(const struct lr_direct_compute *compute)
{
    const int64_t device = gl_context_limits(compute->ctx)->memory_bytes;
    if (compute->params.max_memory_bytes > 0) {
        return compute->params.max_memory_bytes;
    }
    return (device > 0 ? device : lr_physical_memory()) / 4;
}

const struct lr_direct_view_tables *lr_direct_open_tables(struct lr_direct_compute *compute,
                                                          int view)
{
    struct lr_direct_view_tables *kept = &compute->tables[view];
    if (kept->map != NULL) {
        return kept;
    }
    if (compute->borrowed_view == view) {
        return &compute->borrowed;
    }
    lr_direct_view_tables_finish(&compute->borrowed);
    compute->borrowed_view = -1;
    if (lr_direct_view_tables_init(kept, &compute->builder, view) != LR_OK) {
        return NULL;
    }
    if (compute->bytes_kept + kept->bytes <= memory_limit(compute)) {
        compute->bytes_kept += kept->bytes;
        return kept;
    }
    compute->borrowed = *kept;
    compute->borrowed_view = view;
    *kept = (struct lr_direct_view_tables){0};
    return &compute->borrowed;
}

void lr_direct_drop_tables(struct lr_direct_compute *compute, int view)
{
    compute->bytes_kept -= compute->tables[view].bytes;
    lr_direct_view_tables_finish(&compute->tables[view]);
    if (compute->borrowed_view == view) {
        lr_direct_view_tables_finish(&compute->borrowed);
        compute->borrowed_view = -1;
    }
}

/* --- projections --- */

struct lr_direct_pass lr_direct_pass_of(const struct lr_direct_compute *compute)
{
    const struct lr_direct_layout *layout = &compute->layout;
    const int *size = layout->size, *margin = layout->margin;
    return (struct lr_direct_pass){
        .grid = {size[0], size[1], size[2], layout->quads},
        .margin = {margin[0], margin[1], margin[2], 0},
        .extent = {layout->quads + 2 * margin[0], size[0] + 2 * margin[1], size[1] + 2 * margin[2],
                   0},
    };
}

void lr_direct_groups(int64_t threads, int groups[3])
{
    const int64_t count = (threads + LR_DIRECT_GROUP - 1) / LR_DIRECT_GROUP;
    groups[0] = (int)(count < MOST_GROUPS ? count : MOST_GROUPS);
    groups[1] = (int)((count + MOST_GROUPS - 1) / MOST_GROUPS);
    groups[2] = 1;
}

/* A thread for each block of outputs. */
static int64_t count_threads(const struct lr_direct_compute *compute, int axis)
{
    const int *size = compute->params.grid.size;
    const int64_t quads = (compute->layout.quads + LR_DIRECT_QUADS - 1) / LR_DIRECT_QUADS;
    const int64_t blocks = (size[axis] + LR_DIRECT_OUTPUTS - 1) / LR_DIRECT_OUTPUTS;
    return quads * blocks * size[1 - axis];
}

/* Started before the view's tables are made, which have programs of their own. */
static struct gl_program *open_program(struct lr_direct_compute *compute, bool forward)
{
    struct gl_program **program = forward ? &compute->forward : &compute->back;
    if (*program == NULL) {
        *program =
            lr_direct_program(compute, forward ? "direct/forward.comp" : "direct/back.comp", NULL);
    }
    return *program;
}

lr_status lr_direct_open_programs(struct lr_direct_compute *compute)
{
    if (compute->functions != NULL) {
        return LR_OK;
    }
    struct gl_program *forward = open_program(compute, true);
    struct gl_program *back = open_program(compute, false);
    LR_TRY(forward != NULL && back != NULL ? LR_OK : LR_FAILED);
    LR_TRY(gl_program_wait(forward));
    return gl_program_wait(back);
}

lr_status lr_direct_run(struct lr_direct_compute *compute, bool forward, int view,
                        const struct lr_direct_image *source, const struct lr_direct_image *target)
{
    if (compute->functions != NULL) {
        return compute->functions->run(compute->self, forward, view, source, target);
    }
    struct gl_program *program = open_program(compute, forward);
    const struct lr_direct_view_tables *tables =
        program != NULL ? lr_direct_open_tables(compute, view) : NULL;
    if (tables == NULL) {
        return LR_FAILED;
    }
    struct lr_direct_pass uniforms = lr_direct_pass_of(compute);
    uniforms.margin[3] = tables->axis;
    uniforms.counts[0] = tables->num_steps;
    uniforms.counts[1] = tables->num_offsets;
    uniforms.counts[2] = tables->num_rows;
    struct gl_pass pass = {
        .label = forward ? "DIRECT forward" : "DIRECT back",
        .program = program,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .barriers = compute->is_unordered
                        ? 0
                        : GL_TEXTURE_FETCH_BARRIER_BIT | GL_TEXTURE_UPDATE_BARRIER_BIT |
                              GL_SHADER_IMAGE_ACCESS_BARRIER_BIT,
    };
    lr_direct_groups(count_threads(compute, tables->axis), pass.groups);
    pass.buffers[LR_BIND_DIRECT_STEPS].buffer = tables->steps;
    pass.buffers[LR_BIND_DIRECT_VALUES].buffer = tables->values;
    lr_direct_bind_source(&pass, source);
    pass.textures[LR_UNIT_DIRECT_MAP] = tables->map;
    lr_direct_bind_target(&pass, target);
    return gl_pass_run(compute->ctx, &pass);
}

static lr_status run_passes(struct lr_direct_compute *compute, const lr_direct_task *task,
                            const struct lr_direct_image *source,
                            const struct lr_direct_image *target)
{
    for (int k = 0; k < task->num_views; k++) {
        LR_TRY(lr_direct_run(compute, task->work == LR_DIRECT_WORK_FORWARD, task->views[k], source,
                             target));
    }
    return LR_OK;
}

lr_status lr_direct_run_task(struct lr_direct_compute *compute, const lr_direct_task *task,
                             const struct lr_direct_image *source,
                             const struct lr_direct_image *target, double *device_seconds)
{
    if (compute->functions != NULL) {
        return compute->functions->time(compute->self, task, source, target, device_seconds);
    }
    gl_stopwatch_reset(compute->watch);
    gl_stopwatch_begin(compute->watch);
    const lr_status status = run_passes(compute, task, source, target);
    gl_stopwatch_end(compute->watch);
    *device_seconds = gl_stopwatch_seconds(compute->watch);
    return status;
}

/* --- images in and out --- */

static lr_status reclaim(struct lr_direct_compute *compute, const struct lr_direct_image *image)
{
    return compute->functions != NULL ? compute->functions->give_back(compute->self, image) : LR_OK;
}

lr_status lr_direct_put(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                        const float *values)
{
    LR_TRY(reclaim(compute, image));
    return lr_direct_image_upload(image, &compute->layout, values);
}

lr_status lr_direct_fetch(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                          float *values)
{
    LR_TRY(reclaim(compute, image));
    return lr_direct_image_read(image, &compute->layout, values);
}

static lr_status project_current(struct lr_direct_compute *compute,
                                 const struct lr_direct_projection *projection)
{
    const bool is_forward = projection->is_forward;
    const int view = projection->view;
    const lr_direct_task task = {.work = is_forward ? LR_DIRECT_WORK_FORWARD : LR_DIRECT_WORK_BACK,
                                 .views = &view,
                                 .num_views = 1};
    double seconds = 0;
    const bool is_ready =
        compute->functions != NULL ||
        (open_program(compute, is_forward) != NULL && lr_direct_open_tables(compute, view) != NULL);
    LR_TRY(is_ready ? LR_OK : LR_FAILED);
    LR_TRY(projection->is_same ? LR_OK : lr_direct_put(compute, &compute->in, projection->in));
    LR_TRY(lr_direct_run_task(compute, &task, &compute->in, &compute->out, &seconds));
    compute->device_seconds += seconds;
    return lr_direct_fetch(compute, &compute->out, projection->out);
}

static lr_status project(void *self, const struct lr_direct_projection *projection)
{
    struct lr_direct_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = project_current(compute, projection);
    gl_context_release(compute->ctx);
    return status;
}

static lr_status forward(void *self, const lr_selection *part, const lr_vector *image,
                         lr_vector *values)
{
    struct lr_direct_compute *compute = self;
    compute->device_seconds = 0;
    return lr_direct_views_forward(&compute->views, part, image, values);
}

static lr_status back(void *self, const lr_selection *part, const lr_vector *values,
                      lr_vector *image)
{
    struct lr_direct_compute *compute = self;
    compute->device_seconds = 0;
    return lr_direct_views_back(&compute->views, part, values, image);
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    return lr_direct_views_rows(&((struct lr_direct_compute *)self)->views, wanted, sink);
}

static double device_seconds(void *self)
{
    return ((struct lr_direct_compute *)self)->device_seconds;
}

/* --- creating --- */

/* Gathers look that far beyond the grid, rounded up to whole blocks of outputs and quads. */
static lr_status find_margins(struct lr_direct_compute *compute)
{
    const struct lr_direct_backend_params *params = &compute->params;
    int *margin = compute->builder.margin;
    for (int view = 0; view < params->num_views; view++) {
        struct lr_direct_shape shape;
        LR_TRY(lr_direct_shape_init(&shape, &(lr_direct_tables_params){.grid = &params->grid,
                                                                       .view = params->views[view],
                                                                       .kernel = params->kernel,
                                                                       .log = params->log}));
        const int *half = shape.info.half;
        int wanted[3] = {half[2] / FLOATS + 1 + LR_DIRECT_QUADS, half[0] + LR_DIRECT_OUTPUTS - 1,
                         half[1] + LR_DIRECT_OUTPUTS - 1};
        if (compute->functions != NULL) {
            compute->functions->margins(&shape, wanted);
        }
        for (int k = 0; k < 3; k++) {
            margin[k] = wanted[k] > margin[k] ? wanted[k] : margin[k];
        }
        lr_direct_shape_finish(&shape);
    }
    return LR_OK;
}

struct gl_program *lr_direct_program(const struct lr_direct_compute *compute, const char *name,
                                     const char *const *defines)
{
    struct gl_define all[4] = {{0}};
    int next = 0;
    for (int k = 0; defines != NULL && defines[k] != NULL; k++) {
        all[next++].name = defines[k];
    }
    all[next].name = compute->layout.buffers ? "BUFFERS" : NULL;
    return gl_program_start(
        compute->ctx, &(struct gl_program_params){.compute = name, .defines = all, .label = name});
}

static void describe_layout(struct lr_direct_compute *compute)
{
    struct lr_direct_layout *layout = &compute->layout;
    *layout = (struct lr_direct_layout){
        .ctx = compute->ctx,
        .log = compute->params.log,
        .quads = (compute->params.grid.size[2] + FLOATS - 1) / FLOATS,
        .buffers = compute->params.storage == LR_DIRECT_BUFFERS,
    };
    layout->data_buffers = layout->buffers && compute->functions != NULL;
    for (int k = 0; k < 3; k++) {
        layout->size[k] = compute->params.grid.size[k];
        layout->margin[k] = compute->builder.margin[k];
    }
}

static lr_status init(struct lr_direct_compute *compute)
{
    compute->builder.ctx = compute->ctx;
    compute->builder.params = &compute->params;
    compute->borrowed_view = -1;
    compute->views =
        (struct lr_direct_views){.params = &compute->params, .project = project, .self = compute};
    LR_TRY(lr_direct_views_init(&compute->views));
    LR_TRY(find_margins(compute));
    describe_layout(compute);
    LR_TRY(lr_direct_image_init(&compute->in, &compute->layout, "input of a projection", true));
    LR_TRY(lr_direct_image_init(&compute->out, &compute->layout, "output of a projection", true));
    compute->tables = lr_alloc(compute->params.num_views, sizeof(*compute->tables),
                               "look-up tables", compute->params.log);
    compute->watch = gl_stopwatch_create(compute->ctx, "DIRECT");
    if (!compute->tables || !compute->watch) {
        return LR_FAILED;
    }
    compute->self = compute->functions != NULL ? compute->functions->create(compute) : NULL;
    return compute->functions == NULL || compute->self != NULL ? LR_OK : LR_NO_DEVICE;
}

static void finish(struct lr_direct_compute *compute)
{
    lr_direct_resident_destroy(compute);
    if (compute->self != NULL) {
        compute->functions->destroy(compute->self);
    }
    gl_stopwatch_destroy(compute->watch);
    lr_direct_view_tables_finish(&compute->borrowed);
    for (int view = 0; compute->tables != NULL && view < compute->params.num_views; view++) {
        lr_direct_view_tables_finish(&compute->tables[view]);
    }
    free(compute->tables);
    lr_direct_image_finish(&compute->out);
    lr_direct_image_finish(&compute->in);
    gl_program_destroy(compute->back);
    gl_program_destroy(compute->forward);
    lr_direct_builder_finish(&compute->builder);
}

static void destroy(void *self)
{
    struct lr_direct_compute *compute = self;
    if (compute->ctx != NULL && gl_context_make_current(compute->ctx) == LR_OK) {
        finish(compute);
        gl_context_release(compute->ctx);
    }
    gl_context_destroy(compute->ctx);
    lr_direct_views_finish(&compute->views);
    free(compute);
}

static lr_status find_attributes(void *self, lr_direct_attributes *attributes)
{
    const struct lr_direct_compute *compute = self;
    return compute->functions->attributes(compute->self, attributes);
}

static const struct lr_backend_fns compute_fns = {
    .name = "compute",
    .has_parts = true,
    .forward = forward,
    .back = back,
    .rows = rows,
    .device_seconds = device_seconds,
    .updates = &lr_direct_compute_updates,
    .destroy = destroy,
};

static lr_status open_context(struct lr_direct_compute *compute)
{
    LR_TRY(gl_context_open(
        &(struct gl_context_params){.device = compute->params.device, .log = compute->params.log},
        &compute->ctx));
    const lr_status status = init(compute);
    gl_context_release(compute->ctx);
    return status;
}

lr_status lr_direct_compute_create_with(const struct lr_direct_backend_params *params,
                                        const struct lr_direct_functions *functions,
                                        struct lr_direct_backend *backend)
{
    struct lr_direct_compute *compute =
        lr_alloc(1, sizeof(*compute), "the compute backend", params->log);
    if (compute == NULL) {
        return LR_FAILED;
    }
    compute->params = *params;
    compute->functions = functions;
    compute->fns = compute_fns;
    compute->fns.name = functions != NULL ? functions->name : compute_fns.name;
    const lr_status status = open_context(compute);
    if (status != LR_OK) {
        destroy(compute);
        return status;
    }
    const bool has_attributes = functions != NULL && functions->attributes != NULL;
    *backend = (struct lr_direct_backend){.common = {.fns = &compute->fns, .self = compute},
                                          .attributes = has_attributes ? find_attributes : NULL,
                                          .time = lr_direct_compute_time};
    snprintf(backend->common.device, sizeof(backend->common.device), "%s",
             gl_context_limits(compute->ctx)->renderer);
    return LR_OK;
}

lr_status lr_direct_compute_create(const struct lr_direct_backend_params *params,
                                   struct lr_direct_backend *backend)
{
    return lr_direct_compute_create_with(params, NULL, backend);
}
