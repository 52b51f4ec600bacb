/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * How the passes point by point run. */
#include "render/points/points.h"

#include "base/log.h"
#include "common/bindings.h"
#include "render/penetration.h"

#include <string.h>

/* The block of shaders/common/visit.glsl. */
struct visit_pass {
    uint32_t num_draws, num_lors, capacity;
    int32_t mu_steps;
    float mu_origin_mm[4];
    float mu_per_mm[4];
    float detection_depth_mm;
    int32_t last_rounds, unused[2];
};
_Static_assert(sizeof(struct visit_pass) == 64, "the shaders' layout");

static lr_status start_collect(struct lr_points *points)
{
    if (points->collect == NULL) {
        points->collect = gl_program_start(
            points->ctx, &(struct gl_program_params){.compute = "points/collect.comp", .label = "collect voxels"});
    }
    return points->collect != NULL ? LR_OK : LR_FAILED;
}

lr_status lr_points_start(struct lr_points *points, enum lr_points_pass which)
{
    static const char *const names[] = {"points/forward.comp", "points/back.comp", "points/rows.comp"};
    struct lr_rays_define rays;
    int next = 1;
    if (points->programs[which] != NULL) return LR_OK;
    lr_rays_define_init(&rays, points->plan->rays);
    if (points->params.mode == LR_MODE_EXACT) rays.defines[next++].name = "EXACT";
    if (points->plan->hiding) rays.defines[next++].name = "HIDING";
    if (points->cut_short != NULL) rays.defines[next++].name = "LIMITED_LOOPS";
    if (points->params.penetration) rays.defines[next++].name = "PENETRATION";
    if (points->scene.mu != NULL) rays.defines[next++].name = "ABSORPTION";
    points->programs[which] = gl_program_start(
        points->ctx,
        &(struct gl_program_params){.compute = names[which], .defines = rays.defines, .label = names[which]});
    LR_TRY(which == LR_POINTS_BACK ? start_collect(points) : LR_OK);
    return points->programs[which] != NULL ? LR_OK : LR_FAILED;
}

static lr_status upload_list(struct gl_buffer *buffer, const void *data, int count, size_t size)
{
    return gl_buffer_upload(buffer, 0, count * (int64_t)size, data);
}

lr_status lr_points_upload(struct lr_points *points, const struct lr_batch *batch)
{
    if (batch->most_draws > LR_MAX_TARGETS) {
        return lr_error(points->params.log, LR_USAGE,
                        "a point sees %d modules through one, more than the %d that the compute "
                        "backend can hold: use backend raster or cpu",
                        batch->most_draws, LR_MAX_TARGETS);
    }
    LR_TRY(upload_list(points->images, batch->images, batch->num_images, sizeof(*batch->images)));
    LR_TRY(upload_list(points->draws, batch->draws, batch->num_draws, sizeof(*batch->draws)));
    return upload_list(points->rows, batch->rows, batch->num_rows, sizeof(*batch->rows));
}

static struct visit_pass pass_uniforms(const struct lr_points *points, const struct lr_batch *batch,
                                       const struct lr_points_output *output)
{
    const struct lr_scene *scene = &points->scene;
    struct visit_pass uniforms = {
        .num_draws = (uint32_t)batch->num_draws,
        .num_lors = (uint32_t)(output->num_lors < UINT32_MAX ? output->num_lors : UINT32_MAX - 1),
        .capacity = (uint32_t)output->capacity,
        .mu_steps = scene->mu_steps,
        .detection_depth_mm = (float)scene->scanner->detection_depth_mm,
        .last_rounds = 8,
    };
    memcpy(uniforms.mu_origin_mm, scene->mu_origin_mm, sizeof(scene->mu_origin_mm));
    memcpy(uniforms.mu_per_mm, scene->mu_per_mm, sizeof(scene->mu_per_mm));
    return uniforms;
}

/* A renderer that ends loops early says nothing of it. */
static lr_status check_loops(const struct lr_points *points)
{
    uint32_t cut_short = 0;
    if (points->cut_short == NULL) return LR_OK;
    LR_TRY(gl_buffer_read(points->cut_short, 0, sizeof(cut_short), &cut_short));
    if (cut_short == 0) return LR_OK;
    return lr_error(points->params.log, LR_USAGE,
                    "a crystal sees too many modules, cells or lines at once for the software "
                    "renderer, which ends a shader's loops after 65,535 rounds: use fewer rays, "
                    "backend cpu, or a graphics processor");
}

lr_status lr_points_run(struct lr_points *points, enum lr_points_pass which, const struct lr_batch *batch,
                        const struct lr_points_output *output)
{
    LR_TRY(lr_points_start(points, which));
    const struct visit_pass uniforms = pass_uniforms(points, batch, output);
    struct gl_pass pass = {
        .label = gl_program_label(points->programs[which]),
        .program = points->programs[which],
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .groups = {batch->num_images, 1, 1},
        .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT,
    };
    lr_scene_bind(&points->scene, &pass);
    pass.buffers[LR_BIND_IMAGES].buffer = points->images;
    pass.buffers[LR_BIND_DRAWS].buffer = points->draws;
    pass.buffers[LR_BIND_BOXES].buffer = points->boxes;
    pass.buffers[LR_BIND_SUMS].buffer = points->sums;
    pass.buffers[LR_BIND_OUTPUT].buffer = output->buffer;
    pass.buffers[LR_BIND_CUT_SHORT].buffer = points->cut_short;
    LR_TRY(gl_pass_run(points->ctx, &pass));
    return check_loops(points);
}

lr_status lr_points_collect(struct lr_points *points, const struct lr_batch *batch, const struct gl_buffer *voxels)
{
    const uint32_t num_rows = (uint32_t)batch->num_rows;
    LR_TRY(start_collect(points));
    struct gl_pass pass = {
        .label = "collect voxels",
        .program = points->collect,
        .uniforms = &num_rows,
        .uniform_bytes = sizeof(num_rows),
        .groups = {gl_divide_up(batch->num_rows, LR_GROUP_SIZE), 1, 1},
        .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT,
    };
    pass.buffers[LR_BIND_ROWS].buffer = points->rows;
    pass.buffers[LR_BIND_SUMS].buffer = points->sums;
    pass.buffers[LR_BIND_OUTPUT].buffer = voxels;
    return gl_pass_run(points->ctx, &pass);
}
