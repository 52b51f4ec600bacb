/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/points/points.h"

#include "base/log.h"
#include "common/bindings.h"
#include "render/loop_limit.h"
#include "render/penetration.h"
#include "render/raster/correspondence.h"

#include <string.h>

/* The block of shaders/common/visit.glsl. */
struct visit_pass {
    uint32_t num_draws, num_lors, capacity;
    int32_t mu_steps;
    float mu_origin_mm[4];
    float mu_per_mm[4];
    float crystal_mu_per_mm, detection_depth_mm, fixed_scale;
    int32_t last_rounds;
};
_Static_assert(sizeof(struct visit_pass) == 64, "the shaders' layout");

/* Images in a batch: enough groups to fill a device. */
enum { BATCH_IMAGES = 16384, BATCH_IMAGES_SOFTWARE = 2048 };

/* Columns know neither nearer modules nor absorption along the line. */
static bool columns_serve(const struct lr_compute *compute)
{
    const struct lr_backend_params *params = &compute->params;
    if (compute->plan->hiding || params->mu != NULL || params->penetration) {
        return false;
    }
    return lr_columns_serve(params);
}

static struct gl_buffer *make_buffer(const struct lr_compute *compute, const char *label,
                                     int64_t bytes)
{
    return gl_buffer_create(compute->ctx,
                            &(struct gl_buffer_params){.label = label, .size_bytes = bytes});
}

static lr_status make_buffers(struct lr_compute *compute)
{
    const struct lr_plan *plan = compute->plan;
    compute->images = make_buffer(compute, "images of the batch",
                                  plan->max_images * (int64_t)sizeof(struct lr_plan_image));
    compute->draws = make_buffer(compute, "draws of the batch",
                                 plan->max_draws * (int64_t)sizeof(struct lr_plan_draw));
    compute->rows = make_buffer(compute, "rows of the batch",
                                plan->max_images * (int64_t)sizeof(struct lr_plan_row));
    compute->sums =
        make_buffer(compute, "sums of images", plan->max_images * (int64_t)sizeof(float));
    return compute->images && compute->draws && compute->rows && compute->sums ? LR_OK : LR_FAILED;
}

/* Each thread of a pass by columns follows the lines of a module's crystals, about half as often as
 * this says. */
static lr_status check_lines(const struct lr_compute *compute)
{
    const struct lr_backend_params *params = &compute->params;
    const int64_t rays = params->mode == LR_MODE_SAMPLED ? params->rays : 0;
    int64_t crystals = 0;
    for (int m = 0; m < params->scanner->num_modules; m++) {
        const int *size = params->scanner->modules[m].crystals;
        const int64_t count = (int64_t)size[0] * size[1];
        crystals = count > crystals ? count : crystals;
    }
    if (!gl_context_limits(compute->ctx)->software ||
        4 * rays * (rays + 3) * crystals <= 2 * LR_MOST_TURNS_SOFTWARE) {
        return LR_OK;
    }
    return lr_error(params->log, LR_USAGE,
                    "%d x %d lines a crystal are too many for the software renderer, which ends a "
                    "shader's loops after 65,535 rounds: use fewer rays, backend native or cpu, or "
                    "a graphics processor",
                    params->rays, params->rays);
}

static lr_status build(struct lr_compute *compute)
{
    const struct lr_backend_params *params = &compute->params;
    const struct gl_limits *limits = gl_context_limits(compute->ctx);
    const int64_t limit =
        params->max_memory_bytes > 0 && params->max_memory_bytes < limits->max_storage_bytes
            ? params->max_memory_bytes
            : limits->max_storage_bytes;
    compute->max_window = limit / (int64_t)sizeof(float);
    compute->plan = lr_plan_create(&(struct lr_plan_params){
        .lors = params->lors,
        .rays = params->rays,
        .max_images = limits->small_batches ? BATCH_IMAGES_SOFTWARE : BATCH_IMAGES,
        .penetration = params->penetration,
        .image_crystals = limits->software ? LR_GROUP_SIZE : 0,
        .log = params->log,
    });
    if (compute->plan == NULL) {
        return LR_FAILED;
    }
    LR_TRY(lr_scene_init(&compute->scene, compute->ctx, params->lors,
                         &(struct lr_scene_absorption){params->mu, params->mu_steps}));
    LR_TRY(make_buffers(compute));
    if (compute->plan->hiding && limits->software) {
        compute->cut_short = make_buffer(compute, "loops cut short", sizeof(uint32_t));
        LR_TRY(compute->cut_short ? LR_OK : LR_FAILED);
    }
    if (params->penetration) {
        compute->boxes = lr_penetration_boxes(compute->ctx, params->scanner, params->rays);
        LR_TRY(compute->boxes ? LR_OK : LR_FAILED);
    }
    if (columns_serve(compute)) {
        LR_TRY(check_lines(compute));
        compute->columns = lr_columns_create(compute->ctx, params, compute->max_window);
        return compute->columns ? LR_OK : LR_FAILED;
    }
    if (!compute->plan->hiding && lr_pairs_serve(params)) {
        compute->pairs = lr_pairs_create(compute->ctx, params, compute->max_window);
        return compute->pairs ? LR_OK : LR_FAILED;
    }
    return LR_OK;
}

lr_status lr_compute_init(struct lr_compute *compute)
{
    const lr_status status = build(compute);
    if (status != LR_OK) {
        lr_compute_finish(compute);
    }
    return status;
}

void lr_compute_finish(struct lr_compute *compute)
{
    gl_program_destroy(compute->order[0]);
    gl_program_destroy(compute->order[1]);
    lr_pairs_destroy(compute->pairs);
    lr_columns_destroy(compute->columns);
    gl_buffer_destroy(compute->boxes);
    gl_buffer_destroy(compute->cut_short);
    gl_buffer_destroy(compute->sums);
    gl_buffer_destroy(compute->rows);
    gl_buffer_destroy(compute->draws);
    gl_buffer_destroy(compute->images);
    gl_program_destroy(compute->collect);
    for (int k = 0; k < LR_NUM_COMPUTE_PASSES; k++) {
        gl_program_destroy(compute->programs[k]);
    }
    lr_scene_finish(&compute->scene);
    lr_plan_destroy(compute->plan);
    *compute = (struct lr_compute){
        .params = compute->params, .place = compute->place, .ctx = compute->ctx};
}

static lr_status start_collect(struct lr_compute *compute)
{
    if (compute->collect == NULL) {
        compute->collect = gl_program_start(
            compute->ctx, &(struct gl_program_params){.compute = "points/collect.comp",
                                                      .label = "collect voxels"});
    }
    return compute->collect != NULL ? LR_OK : LR_FAILED;
}

lr_status lr_compute_start(struct lr_compute *compute, enum lr_compute_pass which)
{
    static const char *const names[] = {"points/forward.comp", "points/back.comp",
                                        "points/rows.comp"};
    struct lr_rays_define rays;
    int next = 1;
    if (compute->programs[which] != NULL) {
        return LR_OK;
    }
    lr_rays_define_init(&rays, compute->plan->rays);
    if (compute->params.mode == LR_MODE_EXACT) {
        rays.defines[next++].name = "EXACT";
    }
    if (compute->plan->hiding) {
        rays.defines[next++].name = "HIDING";
    }
    if (compute->cut_short != NULL) {
        rays.defines[next++].name = "LIMITED_LOOPS";
    }
    if (compute->params.penetration) {
        rays.defines[next++].name = "PENETRATION";
    }
    if (compute->scene.mu != NULL) {
        rays.defines[next++].name = "ABSORPTION";
    }
    if (which == LR_COMPUTE_FORWARD && compute->params.deterministic) {
        rays.defines[next++].name = "FIXED";
    }
    compute->programs[which] = gl_program_start(
        compute->ctx, &(struct gl_program_params){
                          .compute = names[which], .defines = rays.defines, .label = names[which]});
    LR_TRY(which == LR_COMPUTE_BACK ? start_collect(compute) : LR_OK);
    return compute->programs[which] != NULL ? LR_OK : LR_FAILED;
}

static lr_status upload_list(struct gl_buffer *buffer, const void *data, int count, size_t size)
{
    return gl_buffer_upload(buffer, 0, count * (int64_t)size, data);
}

lr_status lr_compute_upload(struct lr_compute *compute, const struct lr_batch *batch)
{
    if (batch->most_draws > LR_MAX_TARGETS) {
        return lr_error(compute->params.log, LR_USAGE,
                        "a point sees %d modules through one, more than the %d that the compute "
                        "backend can hold: use backend raster or cpu",
                        batch->most_draws, LR_MAX_TARGETS);
    }
    LR_TRY(upload_list(compute->images, batch->images, batch->num_images, sizeof(*batch->images)));
    LR_TRY(upload_list(compute->draws, batch->draws, batch->num_draws, sizeof(*batch->draws)));
    return upload_list(compute->rows, batch->rows, batch->num_rows, sizeof(*batch->rows));
}

static struct visit_pass pass_uniforms(const struct lr_compute *compute,
                                       const struct lr_batch *batch,
                                       const struct lr_compute_output *output)
{
    const struct lr_scene *scene = &compute->scene;
    struct visit_pass uniforms = {
        .num_draws = (uint32_t)batch->num_draws,
        .num_lors = (uint32_t)(output->num_lors < UINT32_MAX ? output->num_lors : UINT32_MAX - 1),
        .capacity = (uint32_t)output->capacity,
        .fixed_scale = output->fixed_scale,
        .mu_steps = scene->mu_steps,
        .crystal_mu_per_mm = (float)scene->scanner->crystal_mu_per_mm,
        .detection_depth_mm = (float)scene->scanner->detection_depth_mm,
        .last_rounds = 8,
    };
    memcpy(uniforms.mu_origin_mm, scene->mu_origin_mm, sizeof(scene->mu_origin_mm));
    memcpy(uniforms.mu_per_mm, scene->mu_per_mm, sizeof(scene->mu_per_mm));
    return uniforms;
}

/* A renderer that ends loops early says nothing of it. */
static lr_status check_loops(const struct lr_compute *compute)
{
    uint32_t cut_short = 0;
    if (compute->cut_short == NULL) {
        return LR_OK;
    }
    LR_TRY(gl_buffer_read(compute->cut_short, 0, sizeof(cut_short), &cut_short));
    if (cut_short == 0) {
        return LR_OK;
    }
    return lr_error(compute->params.log, LR_USAGE,
                    "a crystal sees too many modules, cells or lines at once for the software "
                    "renderer, which ends a shader's loops after 65,535 rounds: use fewer rays, "
                    "backend cpu, or a graphics processor");
}

lr_status lr_compute_run(struct lr_compute *compute, enum lr_compute_pass which,
                         const struct lr_batch *batch, const struct lr_compute_output *output)
{
    LR_TRY(lr_compute_start(compute, which));
    const struct visit_pass uniforms = pass_uniforms(compute, batch, output);
    struct gl_pass pass = {
        .label = gl_program_label(compute->programs[which]),
        .program = compute->programs[which],
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .groups = {batch->num_images, 1, 1},
        .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT,
    };
    lr_scene_bind(&compute->scene, &pass);
    pass.buffers[LR_BIND_IMAGES].buffer = compute->images;
    pass.buffers[LR_BIND_DRAWS].buffer = compute->draws;
    pass.buffers[LR_BIND_BOXES].buffer = compute->boxes;
    pass.buffers[LR_BIND_SUMS].buffer = compute->sums;
    pass.buffers[LR_BIND_OUTPUT].buffer = output->buffer;
    pass.buffers[LR_BIND_CUT_SHORT].buffer = compute->cut_short;
    LR_TRY(gl_pass_run(compute->ctx, &pass));
    return check_loops(compute);
}

lr_status lr_compute_collect(struct lr_compute *compute, const struct lr_batch *batch,
                             const struct gl_buffer *voxels)
{
    const uint32_t num_rows = (uint32_t)batch->num_rows;
    LR_TRY(start_collect(compute));
    struct gl_pass pass = {
        .label = "collect voxels",
        .program = compute->collect,
        .uniforms = &num_rows,
        .uniform_bytes = sizeof(num_rows),
        .groups = {(batch->num_rows + LR_GROUP_SIZE - 1) / LR_GROUP_SIZE, 1, 1},
        .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT,
    };
    pass.buffers[LR_BIND_ROWS].buffer = compute->rows;
    pass.buffers[LR_BIND_SUMS].buffer = compute->sums;
    pass.buffers[LR_BIND_OUTPUT].buffer = voxels;
    return gl_pass_run(compute->ctx, &pass);
}
