/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/raster/correspondence.h"

#include "base/log.h"
#include "common/bindings.h"

#include <stdio.h>
#include <string.h>

/* The block of shaders/raster/correspondence_pass.glsl. */
struct correspondence_pass {
    float atlas_size[2];
    int32_t mu_steps;
    float unused;
    float mu_origin_mm[4];
    float mu_per_mm[4];
};
_Static_assert(sizeof(struct correspondence_pass) == 48, "the shaders' layout");
_Static_assert(sizeof(struct lr_plan_image) == 48, "the shaders' layout");
_Static_assert(sizeof(struct lr_plan_draw) == 8, "the shaders' layout");

static struct gl_program *start_program(const struct lr_correspondence *images)
{
    struct lr_rays_define rays;
    lr_rays_define_init(&rays, images->plan->rays);
    int next = 1;
    if (images->path_length) rays.defines[next++].name = "PATH_LENGTH";
    if (images->scene->mu) rays.defines[next++].name = "ABSORPTION";
    if (images->plan->hiding) rays.defines[next++].name = "HIDING";
    return gl_program_start(images->scene->ctx, &(struct gl_program_params){
                                                    .vertex = "raster/correspondence.vert",
                                                    .fragment = "raster/correspondence.frag",
                                                    .defines = rays.defines,
                                                    .label = "correspondence",
                                                });
}

static struct gl_target *make_atlas(const struct lr_correspondence *images)
{
    const struct lr_plan *plan = images->plan;
    const int columns = images->single ? 1 : plan->columns, rows = images->single ? 1 : plan->rows;
    return gl_target_create(images->scene->ctx, &(struct gl_target_params){
                                                    .label = "correspondence atlas",
                                                    .width = columns * plan->tile[0],
                                                    .height = rows * plan->tile[1],
                                                    .colour_formats = {GL_RG32UI, images->path_length ? GL_R32F : 0},
                                                    .depth = plan->hiding,
                                                });
}

static struct gl_buffer *make_buffer(const struct lr_correspondence *images, const char *label, int64_t bytes)
{
    return gl_buffer_create(images->scene->ctx, &(struct gl_buffer_params){.label = label, .size_bytes = bytes});
}

/* What is set says what is made. */
static lr_status make_parts(struct lr_correspondence *images)
{
    const struct lr_plan *plan = images->plan;
    images->atlas = make_atlas(images);
    images->images =
        make_buffer(images, "images of the batch", plan->max_images * (int64_t)sizeof(struct lr_plan_image));
    images->draws = make_buffer(images, "draws of the batch", plan->max_draws * (int64_t)sizeof(struct lr_plan_draw));
    if (!images->atlas || !images->images || !images->draws) {
        lr_correspondence_finish(images);
        return LR_FAILED;
    }
    return LR_OK;
}

lr_status lr_correspondence_init(struct lr_correspondence *images, struct lr_scene *scene, const struct lr_plan *plan,
                                 bool path_length)
{
    *images = (struct lr_correspondence){.scene = scene, .plan = plan, .path_length = path_length};
    return make_parts(images);
}

lr_status lr_correspondence_init_single(struct lr_correspondence *images, struct lr_scene *scene,
                                        const struct lr_plan *plan)
{
    *images = (struct lr_correspondence){.scene = scene, .plan = plan, .path_length = true, .single = true};
    return make_parts(images);
}

void lr_correspondence_finish(struct lr_correspondence *images)
{
    gl_buffer_destroy(images->draws);
    gl_buffer_destroy(images->images);
    gl_target_destroy(images->atlas);
    gl_program_destroy(images->program);
    *images = (struct lr_correspondence){0};
}

static struct correspondence_pass pass_uniforms(const struct lr_correspondence *images)
{
    const struct lr_scene *scene = images->scene;
    struct correspondence_pass uniforms = {
        .atlas_size = {(float)images->atlas->size[0], (float)images->atlas->size[1]},
        .mu_steps = scene->mu_steps,
    };
    memcpy(uniforms.mu_origin_mm, scene->mu_origin_mm, sizeof(scene->mu_origin_mm));
    memcpy(uniforms.mu_per_mm, scene->mu_per_mm, sizeof(scene->mu_per_mm));
    return uniforms;
}

lr_status lr_correspondence_start(struct lr_correspondence *images)
{
    if (images->program == NULL) images->program = start_program(images);
    return images->program != NULL ? LR_OK : LR_FAILED;
}

static lr_status upload_batch(struct lr_correspondence *images, const struct lr_batch *batch)
{
    LR_TRY(gl_buffer_upload(images->images, 0, batch->num_images * (int64_t)sizeof(*batch->images), batch->images));
    return gl_buffer_upload(images->draws, 0, batch->num_draws * (int64_t)sizeof(*batch->draws), batch->draws);
}

lr_status lr_correspondence_render(struct lr_correspondence *images, const struct lr_batch *batch)
{
    const int height = batch->atlas_rows * images->plan->tile[1];
    if (batch->num_images == 0) return LR_OK;
    LR_TRY(lr_correspondence_start(images));
    LR_TRY(upload_batch(images, batch));
    gl_target_clear(images->atlas, &(struct gl_clear){.depth = 1.0f, .rect = {0, 0, images->atlas->size[0], height}});
    const struct correspondence_pass uniforms = pass_uniforms(images);
    struct gl_pass pass = {
        .label = "correspondence images",
        .program = images->program,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .target = images->atlas,
        .depth_test = images->plan->hiding,
        .clip_distances = 4,
        .primitive = GL_TRIANGLE_STRIP,
        .vertices = 4,
        .instances = batch->num_draws,
    };
    lr_scene_bind(images->scene, &pass);
    pass.buffers[LR_BIND_IMAGES].buffer = images->images;
    pass.buffers[LR_BIND_DRAWS].buffer = images->draws;
    return gl_pass_run(images->scene->ctx, &pass);
}
