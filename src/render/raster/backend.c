/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `raster` backend: Toth, Magdics, Szirmay-Kalos, Fast System Matrix Generation on a GPU
 * Cluster, sections II to IV, on OpenGL. */
#include "operator/backend.h"

#include "base/log.h"
#include "base/mem.h"
#include "gl/timer.h"
#include "render/raster/back.h"
#include "render/raster/picture.h"
#include "render/raster/rows.h"
#include "render/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a batch takes its time for. */
enum kind { IMAGES, SCATTER, GATHER, REDUCTION, NUM_KINDS };
_Static_assert((int)NUM_KINDS <= (int)LR_MOST_DEVICE_PASSES, "callers have room for so many");

static const char *const kind_names[NUM_KINDS] = {
    [IMAGES] = "correspondence images",
    [SCATTER] = "scatter to LORs",
    [GATHER] = "gather from LORs",
    [REDUCTION] = "reduction",
};

struct raster {
    struct lr_backend_params params;
    struct gl_context *ctx;
    struct lr_plan *plan;
    struct lr_scene scene;
    struct lr_correspondence images;
    /* Made when first asked for; compiling shaders takes longer than many a projection. */
    struct lr_correspondence pictures; /* with path lengths */
    struct lr_scatter scatter;
    struct lr_gather gather;
    int64_t max_window;                      /* LORs */
    struct gl_stopwatch *watches[NUM_KINDS]; /* of a projection's batches, kind by kind */
    lr_device_pass passes[NUM_KINDS];        /* of the last projection */
    int num_passes;
};

/* Edge of the atlas: large enough to keep a device busy, small enough for a batch to be cheap. */
static int atlas_size(const struct gl_limits *limits, const lr_lors *lors, int rays)
{
    int size = limits->small_batches ? 2048 : 4096;
    const int largest = limits->max_texture_size < limits->max_viewport_size[0]
                            ? limits->max_texture_size
                            : limits->max_viewport_size[0];
    int tile[2];
    lr_plan_tile_size(lors->scanner, rays, tile);
    while (size * 2 <= largest &&
           (int64_t)(size / tile[0]) * (size / tile[1]) < lors->scanner->num_modules) {
        size *= 2;
    }
    return size < largest ? size : largest;
}

/* Points, as the paper has them, are added in a fixed order, and slowly: graphics processors made for
 * computing draw few points at a time, and renderers in software one. */
static lr_status open_scatter(struct raster *raster)
{
    if (raster->scatter.program != NULL) {
        return LR_OK;
    }
    raster->scatter = (struct lr_scatter){
        .scene = &raster->scene, .plan = raster->plan, .by_points = raster->params.deterministic};
    return lr_scatter_init(&raster->scatter);
}

static lr_status open_gather(struct raster *raster)
{
    if (raster->gather.image != NULL) {
        return LR_OK;
    }
    LR_TRY(lr_gather_init(&raster->gather, &raster->scene, raster->plan,
                          lr_grid_num_voxels(raster->params.grid)));
    raster->gather.gathers = raster->watches[GATHER];
    raster->gather.reductions = raster->watches[REDUCTION];
    return LR_OK;
}

/* What a batch of a projection works with. */
struct projection {
    struct raster *raster;
    struct lr_lor_texture *lors;
    struct lr_texture_sums *sums; /* forward */
};

static lr_status draw_images(struct raster *raster, const struct lr_batch *batch)
{
    gl_stopwatch_begin(raster->watches[IMAGES]);
    const lr_status status = lr_correspondence_render(&raster->images, batch);
    gl_stopwatch_end(raster->watches[IMAGES]);
    return status;
}

static void reset_watches(const struct raster *raster)
{
    for (int k = 0; k < NUM_KINDS; k++) {
        gl_stopwatch_reset(raster->watches[k]);
    }
}

/* Those that had laps. */
static void read_watches(struct raster *raster)
{
    raster->num_passes = 0;
    for (int k = 0; k < NUM_KINDS; k++) {
        const double seconds = gl_stopwatch_seconds(raster->watches[k]);
        if (seconds > 0.0) {
            raster->passes[raster->num_passes++] = (lr_device_pass){kind_names[k], seconds};
        }
    }
}

static lr_status forward_batch(void *user, const struct lr_batch *batch)
{
    const struct projection *at = user;
    struct raster *raster = at->raster;
    LR_TRY(draw_images(raster, batch));
    gl_stopwatch_begin(raster->watches[SCATTER]);
    const lr_status status = lr_scatter_run(&raster->scatter, &raster->images, batch, at->lors);
    gl_stopwatch_end(raster->watches[SCATTER]);
    const int *tile = raster->plan->tile;
    return status == LR_OK
               ? lr_texture_sums_take(at->sums, (int64_t)batch->num_images * tile[0] * tile[1])
               : status;
}

static lr_status forward_window(struct raster *raster, const struct lr_plan_work *work,
                                struct lr_texture_sums *sums)
{
    struct projection at = {raster, &sums->lors, sums};
    const struct lr_sweep sweep = {.params = &raster->params,
                                   .plan = raster->plan,
                                   .what = "projecting forward",
                                   .batch = forward_batch,
                                   .user = &at};
    return lr_sweep_run(&sweep, work);
}

static lr_status forward_windows(struct raster *raster, const float *image, float *data)
{
    LR_TRY(lr_correspondence_start(&raster->images));
    LR_TRY(open_scatter(raster));
    const struct lr_rows rows = lr_sweep_voxels(&raster->params);
    struct lr_plan_work work = {.rows = &rows, .emission = image};
    while (lr_plan_next_window(raster->params.lors, raster->max_window, &work.window)) {
        LR_TRY(lr_scene_set_window(&raster->scene, &work.window));
        struct lr_texture_sums sums = {.lors =
                                           lr_lor_texture_create(raster->ctx, work.window.num_lors),
                                       .log = raster->params.log};
        lr_status status = sums.lors.target ? LR_OK : LR_FAILED;
        if (status == LR_OK) {
            status = forward_window(raster, &work, &sums);
        }
        if (status == LR_OK) {
            status = lr_texture_sums_read(&sums, data + work.window.first_lor);
        }
        lr_texture_sums_finish(&sums);
        lr_lor_texture_destroy(&sums.lors);
        LR_TRY(status);
    }
    return LR_OK;
}

static lr_status raster_forward(void *self, const lr_selection *part, const lr_vector *image,
                                lr_vector *values)
{
    struct raster *raster = self;
    (void)part; /* it has no parts */
    LR_TRY(gl_context_make_current(raster->ctx));
    reset_watches(raster);
    const lr_status status = forward_windows(raster, image->values, values->values);
    read_watches(raster);
    gl_context_release(raster->ctx);
    return gl_context_status(raster->ctx, status);
}

static lr_status back_batch(void *user, const struct lr_batch *batch)
{
    const struct projection *at = user;
    struct raster *raster = at->raster;
    LR_TRY(draw_images(raster, batch));
    return lr_gather_run(&raster->gather, &raster->images, batch, at->lors);
}

static lr_status back_window(struct raster *raster, const struct lr_plan_work *work,
                             struct lr_lor_texture *lors)
{
    struct projection at = {.raster = raster, .lors = lors};
    const struct lr_sweep sweep = {.params = &raster->params,
                                   .plan = raster->plan,
                                   .what = "projecting back",
                                   .batch = back_batch,
                                   .user = &at};
    return lr_sweep_run(&sweep, work);
}

static lr_status back_windows(struct raster *raster, const float *data, float *image)
{
    const struct lr_rows rows = lr_sweep_voxels(&raster->params);
    struct lr_plan_work work = {.rows = &rows};
    LR_TRY(lr_correspondence_start(&raster->images));
    LR_TRY(open_gather(raster));
    lr_gather_clear(&raster->gather);
    while (lr_plan_next_window(raster->params.lors, raster->max_window, &work.window)) {
        LR_TRY(lr_scene_set_window(&raster->scene, &work.window));
        struct lr_lor_texture lors = lr_lor_texture_create(raster->ctx, work.window.num_lors);
        lr_status status = lors.target ? LR_OK : LR_FAILED;
        if (status == LR_OK) {
            status = lr_lor_texture_upload(&lors, data + work.window.first_lor);
        }
        if (status == LR_OK) {
            status = back_window(raster, &work, &lors);
        }
        lr_lor_texture_destroy(&lors);
        LR_TRY(status);
    }
    return lr_gather_read(&raster->gather, image);
}

static lr_status raster_back(void *self, const lr_selection *part, const lr_vector *values,
                             lr_vector *image)
{
    struct raster *raster = self;
    (void)part; /* it has no parts */
    LR_TRY(gl_context_make_current(raster->ctx));
    reset_watches(raster);
    const lr_status status = back_windows(raster, values->values, image->values);
    read_watches(raster);
    gl_context_release(raster->ctx);
    return gl_context_status(raster->ctx, status);
}

static lr_status raster_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink)
{
    struct raster *raster = self;
    const struct lr_row_reader reader = {
        .images = &raster->images,
        .plan = raster->plan,
        .threads = raster->params.threads,
        .log = raster->params.log,
        .progress = raster->params.progress,
    };
    const struct lr_lor_window all = lr_plan_all_lors(raster->params.lors);
    LR_TRY(gl_context_make_current(raster->ctx));
    lr_status status = lr_scene_set_window(&raster->scene, &all);
    if (status == LR_OK) {
        status = lr_rows_read(&reader, rows, sink);
    }
    gl_context_release(raster->ctx);
    return gl_context_status(raster->ctx, status);
}

static lr_status open_pictures(struct raster *raster)
{
    return raster->pictures.atlas == NULL
               ? lr_correspondence_init_single(&raster->pictures, &raster->scene, raster->plan)
               : LR_OK;
}

static lr_status build_pictures(struct raster *raster)
{
    LR_TRY(open_pictures(raster));
    LR_TRY(lr_correspondence_start(&raster->pictures));
    return gl_program_wait(raster->pictures.program);
}

static lr_status raster_prepare_picture(void *self)
{
    struct raster *raster = self;
    LR_TRY(gl_context_make_current(raster->ctx));
    const lr_status status = build_pictures(raster);
    gl_context_release(raster->ctx);
    return gl_context_status(raster->ctx, status);
}

static lr_status render_picture(struct raster *raster, const struct lr_picture_request *request,
                                lr_pixel *pixels)
{
    const struct lr_lor_window all = lr_plan_all_lors(raster->params.lors);
    LR_TRY(lr_scene_set_window(&raster->scene, &all));
    LR_TRY(open_pictures(raster));
    return lr_picture_render(&raster->pictures, raster->plan, request, pixels);
}

static lr_status raster_picture(void *self, const double point_mm[3], int module, lr_pixel *pixels)
{
    struct raster *raster = self;
    LR_TRY(gl_context_make_current(raster->ctx));
    const lr_status status =
        render_picture(raster, &(struct lr_picture_request){point_mm, module}, pixels);
    gl_context_release(raster->ctx);
    return gl_context_status(raster->ctx, status);
}

static lr_status start_programs(struct raster *raster)
{
    LR_TRY(lr_correspondence_start(&raster->images));
    LR_TRY(open_scatter(raster));
    return open_gather(raster);
}

static lr_status raster_prepare(void *self, bool lists)
{
    (void)lists;
    struct raster *raster = self;
    LR_TRY(gl_context_make_current(raster->ctx));
    const lr_status status = start_programs(raster);
    gl_context_release(raster->ctx);
    return gl_context_status(raster->ctx, status);
}

static double raster_device_seconds(void *self)
{
    const struct raster *raster = self;
    double seconds = 0.0;
    for (int k = 0; k < raster->num_passes; k++) {
        seconds += raster->passes[k].seconds;
    }
    return seconds;
}

static int raster_device_passes(void *self, lr_device_pass *passes)
{
    const struct raster *raster = self;
    memcpy(passes, raster->passes, (size_t)raster->num_passes * sizeof(*passes));
    return raster->num_passes;
}

static void raster_destroy(void *self)
{
    struct raster *raster = self;
    if (raster->ctx && gl_context_make_current(raster->ctx) == LR_OK) {
        for (int k = 0; k < NUM_KINDS; k++) {
            gl_stopwatch_destroy(raster->watches[k]);
        }
        lr_gather_finish(&raster->gather);
        lr_scatter_finish(&raster->scatter);
        lr_correspondence_finish(&raster->pictures);
        lr_correspondence_finish(&raster->images);
        lr_scene_finish(&raster->scene);
        gl_context_release(raster->ctx);
    }
    lr_plan_destroy(raster->plan);
    gl_context_destroy(raster->ctx);
    free(raster);
}

static const struct lr_backend_fns raster_fns = {
    .name = "raster",
    .voxel_bytes = 16,
    .forward = raster_forward,
    .back = raster_back,
    .rows = raster_rows,
    .picture = raster_picture,
    .device_seconds = raster_device_seconds,
    .device_passes = raster_device_passes,
    .prepare = raster_prepare,
    .prepare_picture = raster_prepare_picture,
    .destroy = raster_destroy,
};

static lr_status build(struct raster *raster)
{
    const struct lr_backend_params *params = &raster->params;
    const struct gl_limits *limits = gl_context_limits(raster->ctx);
    raster->max_window = lr_lor_texture_capacity(raster->ctx, (params->max_memory_bytes + 1) / 2);
    raster->plan = lr_plan_create(&(struct lr_plan_params){
        .lors = params->lors,
        .rays = params->rays,
        .atlas_size = atlas_size(limits, params->lors, params->rays),
        .log = params->log,
    });
    if (raster->plan == NULL) {
        return LR_FAILED;
    }
    for (int k = 0; k < NUM_KINDS; k++) {
        raster->watches[k] = gl_stopwatch_create(raster->ctx, kind_names[k]);
        if (raster->watches[k] == NULL) {
            return LR_FAILED;
        }
    }
    LR_TRY(lr_scene_init(&raster->scene, raster->ctx, params->lors,
                         &(struct lr_scene_absorption){params->mu, params->mu_steps}));
    return lr_correspondence_init(&raster->images, &raster->scene, raster->plan, false);
}

lr_status lr_raster_backend_create(const struct lr_backend_params *params,
                                   struct lr_backend *backend)
{
    if (params->penetration) {
        return lr_error(params->log, LR_USAGE,
                        "the raster backend reads hits on the detection plane and knows no crystal "
                        "penetration: use backend cpu or compute");
    }
    struct raster *raster = lr_alloc(1, sizeof(*raster), "the raster backend", params->log);
    if (raster == NULL) {
        return LR_FAILED;
    }
    raster->params = *params;
    lr_status status = gl_context_open(
        &(struct gl_context_params){.device = params->device, .log = params->log}, &raster->ctx);
    if (status == LR_OK) {
        status = build(raster);
        gl_context_release(raster->ctx);
    }
    if (status != LR_OK) {
        raster_destroy(raster);
        return status;
    }
    backend->fns = &raster_fns;
    backend->self = raster;
    snprintf(backend->device, sizeof(backend->device), "%s",
             gl_context_limits(raster->ctx)->renderer);
    backend->is_gpu = !gl_context_limits(raster->ctx)->software;
    backend->is_emulated = !backend->is_gpu;
    return LR_OK;
}
