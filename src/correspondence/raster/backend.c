/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `raster` backend on OpenGL: Toth, Magdics, Szirmay-Kalos, Fast System Matrix Generation on a GPU Cluster,
 * sections II to IV. All steps are computed by the graphics processor. */
#include "operator/backend.h"

#include "base/log.h"
#include "base/mem.h"
#include "correspondence/plan.h"
#include "correspondence/raster/raster.h"
#include "correspondence/values.h"
#include "gl/timer.h"

#include <stdio.h>
#include <stdlib.h>

/* The steps of a batch. Each step has its own stopwatch. */
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
    lr_place *place;        /* owned; images and LOR values stay at this place between projections */
    struct gl_context *ctx; /* the place's context */
    struct lr_plan *plan;
    struct lr_scene scene;
    struct lr_correspondence images;
    /* `pictures`, `scatter` and `gather` are made at their first use, because their shaders take long to compile. */
    struct lr_correspondence pictures; /* images with path lengths */
    struct lr_scatter scatter;
    struct lr_gather gather;
    struct lr_texels lors;                   /* the LOR image of the window */
    int64_t max_window;                      /* largest number of LORs of a window */
    bool is_forward;                         /* direction of the current projection */
    struct gl_stopwatch *watches[NUM_KINDS]; /* one for each step, for all batches of a projection */
    struct lr_blanks blanks;
};

/* Starts the programs and makes the buffers of a projection, unless they exist. */
static lr_status open_projection(struct raster *raster, bool is_forward)
{
    const int *samples = raster->params.samples;
    const int64_t num_voxels = lr_grid_num_voxels(raster->params.grid);
    LR_TRY(lr_correspondence_start(&raster->images));
    if (is_forward && raster->scatter.scatter == NULL) {
        LR_TRY(lr_scatter_init(&raster->scatter, &raster->scene, raster->plan, num_voxels));
        raster->scatter.factor = (float)(1.0 / ((double)samples[0] * samples[1] * samples[2]));
    } else if (!is_forward && raster->gather.gather == NULL) {
        LR_TRY(lr_gather_init(&raster->gather, &raster->scene, raster->plan, num_voxels));
        raster->gather.gathers = raster->watches[GATHER];
        raster->gather.reductions = raster->watches[REDUCTION];
    }
    return LR_OK;
}

static lr_status project_batch(void *user, const struct lr_batch *batch)
{
    struct raster *raster = user;
    gl_stopwatch_begin(raster->watches[IMAGES]);
    lr_status status = lr_correspondence_render(&raster->images, batch);
    gl_stopwatch_end(raster->watches[IMAGES]);
    LR_TRY(status);
    if (!raster->is_forward) return lr_gather_run(&raster->gather, &raster->images, batch, &raster->lors);
    gl_stopwatch_begin(raster->watches[SCATTER]);
    status = lr_scatter_run(&raster->scatter, &raster->images, batch, &raster->lors);
    gl_stopwatch_end(raster->watches[SCATTER]);
    return status;
}

/* Projects forward or back. in NULL = a back-projection of ones. */
static lr_status project(struct raster *raster, const lr_selection *part, bool forward, const lr_vector *in,
                         lr_vector *out)
{
    const lr_selection all = {0}, *selection = part != NULL ? part : &all;
    const struct lr_rows rows = lr_rows_of_voxels(&raster->params, 0, lr_grid_num_voxels(raster->params.grid));
    struct lr_plan_work work = {.rows = &rows,
                                .window =
                                    lr_pair_window_begin(raster->params.lors, selection->pairs, selection->num_pairs),
                                .emission = forward ? in->values : NULL};
    const struct lr_sweep sweep = {.params = &raster->params,
                                   .plan = raster->plan,
                                   .what = forward ? "projecting forward" : "projecting back",
                                   .batch = project_batch,
                                   .user = raster};
    for (int k = 0; k < NUM_KINDS; k++) gl_stopwatch_reset(raster->watches[k]);
    lr_values_count_traffic(raster->place, in, out);
    raster->is_forward = forward;
    LR_TRY(open_projection(raster, forward));

    if (forward)
        LR_TRY(lr_texels_copy(&raster->scatter.voxels, in, true));
    else
        gl_target_clear(raster->gather.image.target, NULL);

    while (lr_pair_window_next(&work.window, raster->max_window)) {
        LR_TRY(lr_scene_set_window(&raster->scene, &work.window));
        LR_TRY(lr_texels_renew(&raster->lors, raster->ctx, "LOR image", work.window.num_values));
        const float one = 1.0f;
        lr_vector values;
        if (forward || in != NULL)
            values = lr_vector_part(forward ? out : in, work.window.first_value, work.window.num_values);
        if (forward)
            lr_scatter_begin(&raster->scatter);
        else if (in != NULL)
            LR_TRY(lr_texels_copy(&raster->lors, &values, true));
        else
            gl_texture_clear(raster->lors.target->colours[0], &one);
        LR_TRY(lr_sweep_run(&sweep, &work));
        if (forward) LR_TRY(lr_scatter_end(&raster->scatter, &raster->lors, &values));
    }
    return forward ? LR_OK : lr_texels_copy(&raster->gather.image, out, false);
}

static lr_status raster_project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in,
                                lr_vector *out)
{
    struct raster *raster = self;
    LR_TRY(gl_context_make_current(raster->ctx));
    return gl_context_leave(raster->ctx, project(raster, part, is_forward, in, out));
}

static lr_status raster_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink)
{
    struct raster *raster = self;
    const struct lr_row_reader reader = {
        .images = &raster->images,
        .plan = raster->plan,
        .params = &raster->params,
    };
    const struct lr_pair_window all = lr_pair_window_all(raster->params.lors);
    LR_TRY(gl_context_make_current(raster->ctx));
    lr_status status = lr_scene_set_window(&raster->scene, &all);
    if (status == LR_OK) status = lr_rows_read(&reader, rows, sink);
    return gl_context_leave(raster->ctx, status);
}

static lr_status open_pictures(struct raster *raster)
{
    return raster->pictures.atlas == NULL
               ? lr_correspondence_init(&raster->pictures, &raster->scene, raster->plan, true, true)
               : LR_OK;
}

static lr_status raster_prepare_picture(void *self)
{
    struct raster *raster = self;
    LR_TRY(gl_context_make_current(raster->ctx));
    lr_status status = open_pictures(raster);
    if (status == LR_OK) status = lr_correspondence_start(&raster->pictures);
    if (status == LR_OK) status = gl_program_wait(raster->pictures.program);
    return gl_context_leave(raster->ctx, status);
}

static lr_status raster_picture(void *self, const double point_mm[3], int module, lr_pixel *pixels)
{
    struct raster *raster = self;
    const struct lr_pair_window all = lr_pair_window_all(raster->params.lors);
    LR_TRY(gl_context_make_current(raster->ctx));
    lr_status status = lr_scene_set_window(&raster->scene, &all);
    status = status == LR_OK ? open_pictures(raster) : status;
    if (status == LR_OK) status = lr_picture_render(&raster->pictures, raster->plan, point_mm, module, pixels);
    return gl_context_leave(raster->ctx, status);
}

static lr_status raster_prepare(void *self, bool lists)
{
    (void)lists;
    struct raster *raster = self;
    LR_TRY(gl_context_make_current(raster->ctx));
    lr_status status = open_projection(raster, true);
    if (status == LR_OK) status = open_projection(raster, false);
    return gl_context_leave(raster->ctx, status);
}

static lr_status raster_blank(void *self, const lr_selection *part, lr_vector *values)
{
    struct raster *raster = self;
    LR_TRY(gl_context_make_current(raster->ctx));
    const lr_status status = lr_blanks_run(&raster->blanks, raster->params.lors, part, values);
    return gl_context_leave(raster->ctx, status);
}

/* Lists the steps (enum kind) that have run, with the device time of each. */
static int raster_device_passes(void *self, lr_device_pass *passes)
{
    struct raster *raster = self;
    int num_passes = 0;
    if (gl_context_make_current(raster->ctx) != LR_OK) return 0;
    for (int k = 0; k < NUM_KINDS; k++) {
        const double seconds = gl_stopwatch_seconds(raster->watches[k]);
        if (seconds > 0.0) passes[num_passes++] = (lr_device_pass){kind_names[k], seconds};
    }
    gl_context_release(raster->ctx);
    return num_passes;
}

static double raster_device_seconds(void *self)
{
    lr_device_pass passes[NUM_KINDS];
    double seconds = 0.0;
    for (int k = raster_device_passes(self, passes) - 1; k >= 0; k--) seconds += passes[k].seconds;
    return seconds;
}

static void raster_destroy(void *self)
{
    struct raster *raster = self;
    if (raster->ctx && gl_context_make_current_to_free(raster->ctx)) {
        for (int k = 0; k < NUM_KINDS; k++) gl_stopwatch_destroy(raster->watches[k]);
        lr_texels_destroy(&raster->lors);
        lr_blanks_finish(&raster->blanks);
        lr_gather_finish(&raster->gather);
        lr_scatter_finish(&raster->scatter);
        lr_correspondence_finish(&raster->pictures);
        lr_correspondence_finish(&raster->images);
        lr_scene_finish(&raster->scene);
        gl_context_release(raster->ctx);
    }
    lr_plan_destroy(raster->plan);
    lr_place_silence(raster->place); /* vectors can keep the place open after the log is gone */
    lr_place_close(raster->place);
    free(raster);
}

static const struct lr_backend_fns raster_fns = {
    .name = "raster",
    .has_parts = true,
    .lists_by_all = true,
    .is_never_kept = true,
    .voxel_bytes = 16,
    .project = raster_project,
    .blank = raster_blank,
    .rows = raster_rows,
    .picture = raster_picture,
    .device_seconds = raster_device_seconds,
    .device_passes = raster_device_passes,
    .prepare = raster_prepare,
    .prepare_picture = raster_prepare_picture,
    .destroy = raster_destroy,
};

lr_status lr_raster_backend_create(const struct lr_backend_params *params, struct lr_backend *backend)
{
    if (params->penetration) {
        return lr_error(params->log, LR_USAGE,
                        "the raster backend reads hits on the detection plane and knows no crystal "
                        "penetration: use backend cpu or compute");
    }
    struct raster *raster = lr_alloc(1, sizeof(*raster), "the raster backend", params->log);
    if (raster == NULL) return LR_FAILED;
    raster->params = *params;
    lr_status status = lr_place_open_on(
        &(lr_place_params){.kind = LR_PLACE_GL, .device = params->device, .shared = params->shared, .log = params->log},
        &raster->place);
    const struct gl_limits *limits = NULL;
    if (status == LR_OK) {
        raster->ctx = raster->place->ctx;
        limits = gl_context_limits(raster->ctx);
        gl_context_clear_by_driver(raster->ctx);
        status = gl_context_make_current(raster->ctx);
    }
    if (status == LR_OK) {
        /* A large atlas keeps a device busy, and a small one keeps batches short. */
        const int64_t num_modules = params->lors->scanner->num_modules;
        const int texture = limits->max_texture_size, viewport = limits->max_viewport_size[0];
        const int most = texture < viewport ? texture : viewport;
        int size = limits->small_batches ? 2048 : 4096, tile[2];
        lr_plan_tile_size(params->lors->scanner, params->rays, tile);
        while (size * 2 <= most && (int64_t)(size / tile[0]) * (size / tile[1]) < num_modules) size *= 2;
        raster->max_window = lr_texels_capacity(raster->ctx, (params->max_memory_bytes + 1) / 2);
        raster->plan = lr_plan_create(&(struct lr_plan_params){
            .lors = params->lors, .rays = params->rays, .atlas_size = size < most ? size : most, .log = params->log});
        status = raster->plan != NULL ? LR_OK : LR_FAILED;
        for (int k = 0; k < NUM_KINDS && status == LR_OK; k++) {
            raster->watches[k] = gl_stopwatch_create(raster->ctx, kind_names[k]);
            status = raster->watches[k] != NULL ? LR_OK : LR_FAILED;
        }
        if (status == LR_OK)
            status = lr_scene_init(&raster->scene, raster->ctx, params->lors,
                                   &(struct lr_scene_absorption){params->mu, params->mu_steps});
        if (status == LR_OK)
            status = lr_correspondence_init(&raster->images, &raster->scene, raster->plan, false, false);
        status = gl_context_leave(raster->ctx, status);
    }
    if (status != LR_OK) {
        raster_destroy(raster);
        return status;
    }
    backend->fns = &raster_fns;
    backend->self = raster;
    backend->place = raster->place;
    snprintf(backend->device, sizeof(backend->device), "%s", limits->renderer);
    backend->is_gpu = !limits->software;
    backend->is_emulated = limits->software;
    return LR_OK;
}
