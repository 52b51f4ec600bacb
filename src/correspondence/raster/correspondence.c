/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "common/bindings.h"
#include "correspondence/raster/raster.h"
#include "device/place.h"
#include "gl/vectors.h"

#include <stdio.h>
#include <string.h>

/* The count of numbers in a row of the texture. Rows are short, so that little memory is lost if the last row is
 * incomplete. */
enum { WIDTH = 4096 };

struct lr_texels lr_texels_create(struct gl_context *ctx, const char *label, int64_t count)
{
    const int64_t height = (count + WIDTH - 1) / WIDTH;
    const int64_t most = gl_context_limits(ctx)->max_texture_size;
    struct gl_target *target = NULL;
    if (height > most) {
        lr_error(gl_context_log(ctx), LR_FAILED,
                 "%s: %lld numbers are more than a texture of %s can hold (%lld): use backend compute or native", label,
                 (long long)count, gl_context_limits(ctx)->renderer, (long long)(most * WIDTH));
    } else {
        target = gl_target_create(ctx, &(struct gl_target_params){.label = label,
                                                                  .width = WIDTH,
                                                                  .height = height > 0 ? (int)height : 1,
                                                                  .colour_formats = {GL_R32F}});
    }
    return (struct lr_texels){.target = target, .count = count};
}

lr_status lr_texels_renew(struct lr_texels *texels, struct gl_context *ctx, const char *label, int64_t count)
{
    if (texels->target != NULL && texels->count == count) {
        gl_target_clear(texels->target, NULL);
        return LR_OK;
    }
    lr_texels_destroy(texels);
    *texels = lr_texels_create(ctx, label, count);
    return texels->target != NULL ? LR_OK : LR_FAILED;
}

void lr_texels_destroy(struct lr_texels *texels)
{
    gl_target_destroy(texels->target);
    *texels = (struct lr_texels){0};
}

int64_t lr_texels_capacity(const struct gl_context *ctx, int64_t bytes)
{
    int64_t rows = gl_context_limits(ctx)->max_texture_size;
    const int64_t row_bytes = WIDTH * (int64_t)sizeof(float);
    if (bytes > 0 && bytes / row_bytes < rows) rows = bytes / row_bytes;
    return (rows > 0 ? rows : 1) * WIDTH;
}

lr_status lr_texels_copy(const struct lr_texels *texels, const lr_vector *vector, bool to_texels)
{
    struct gl_texture *texture = texels->target->colours[0];
    /* The numbers fill some rows of the texture, and then a part of the next row. Either part of the copy can be
     * empty. */
    const int rows = (int)(texels->count / WIDTH);
    const struct gl_box boxes[2] = {{.width = WIDTH, .height = rows},
                                    {.y = rows, .width = (int)(texels->count % WIDTH), .height = 1}};
    int64_t done = 0;
    for (int k = 0; k < 2; k++) {
        const int64_t count = (int64_t)boxes[k].width * boxes[k].height;
        if (count > 0 && vector->values != NULL) {
            float *values = (float *)vector->values + done;
            LR_TRY(to_texels ? gl_texture_upload(texture, &boxes[k], values)
                             : gl_texture_read(texture, &boxes[k], values));
        } else if (count > 0) {
            const struct lr_vector_range range = lr_vector_gl_range(vector);
            const int64_t at = range.offset + done * (int64_t)sizeof(float);
            LR_TRY(to_texels ? gl_texture_copy_buffer(texture, &boxes[k], range.buffer, at)
                             : gl_buffer_copy_texture(range.buffer, at, texture, &boxes[k]));
        }
        done += count;
    }
    return LR_OK;
}

/* --- passes --- */

/* The uniform block of shaders/correspondence/raster/correspondence_pass.glsl. */
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

lr_status lr_correspondence_init(struct lr_correspondence *images, struct lr_scene *scene, const struct lr_plan *plan,
                                 bool path_length, bool single)
{
    *images = (struct lr_correspondence){.scene = scene, .plan = plan, .path_length = path_length};
    images->atlas = gl_target_create(scene->ctx, &(struct gl_target_params){
                                                     .label = "correspondence atlas",
                                                     .width = (single ? 1 : plan->columns) * plan->tile[0],
                                                     .height = (single ? 1 : plan->rows) * plan->tile[1],
                                                     .colour_formats = {GL_RG32UI, path_length ? GL_R32F : 0},
                                                     .depth = plan->hiding,
                                                 });
    images->images = gl_data_buffer(scene->ctx, "images of the batch",
                                    plan->max_images * (int64_t)sizeof(struct lr_plan_image), NULL);
    images->draws =
        gl_data_buffer(scene->ctx, "draws of the batch", plan->max_draws * (int64_t)sizeof(struct lr_plan_draw), NULL);
    if (!images->atlas || !images->images || !images->draws) {
        lr_correspondence_finish(images);
        return LR_FAILED;
    }
    return LR_OK;
}

void lr_correspondence_finish(struct lr_correspondence *images)
{
    gl_buffers_destroy(images->draws, images->images);
    gl_target_destroy(images->atlas);
    gl_program_destroy(images->program);
    *images = (struct lr_correspondence){0};
}

lr_status lr_correspondence_start(struct lr_correspondence *images)
{
    if (images->program == NULL) {
        struct lr_rays_define rays;
        lr_rays_define_init(&rays, images->plan->rays);
        int next = 1;
        if (images->path_length) rays.defines[next++].name = "PATH_LENGTH";
        if (images->scene->mu) rays.defines[next++].name = "ABSORPTION";
        if (images->plan->hiding) rays.defines[next++].name = "HIDING";
        images->program =
            gl_program_start(images->scene->ctx, &(struct gl_program_params){
                                                     .vertex = "correspondence/raster/correspondence.vert",
                                                     .fragment = "correspondence/raster/correspondence.frag",
                                                     .defines = rays.defines,
                                                     .label = "correspondence",
                                                 });
    }

    return images->program != NULL ? LR_OK : LR_FAILED;
}

lr_status lr_correspondence_render(struct lr_correspondence *images, const struct lr_batch *batch)
{
    const int height = batch->atlas_rows * images->plan->tile[1];
    if (batch->num_images == 0) return LR_OK;
    LR_TRY(lr_correspondence_start(images));
    LR_TRY(gl_buffer_upload(images->images, 0, batch->num_images * (int64_t)sizeof(*batch->images), batch->images));
    LR_TRY(gl_buffer_upload(images->draws, 0, batch->num_draws * (int64_t)sizeof(*batch->draws), batch->draws));

    gl_target_clear(images->atlas, &(struct gl_clear){.depth = 1.0f, .rect = {0, 0, images->atlas->size[0], height}});
    const struct lr_scene *scene = images->scene;
    struct correspondence_pass uniforms = {
        .atlas_size = {(float)images->atlas->size[0], (float)images->atlas->size[1]},
        .mu_steps = scene->mu_steps,
    };
    memcpy(uniforms.mu_origin_mm, scene->mu_origin_mm, sizeof(scene->mu_origin_mm));
    memcpy(uniforms.mu_per_mm, scene->mu_per_mm, sizeof(scene->mu_per_mm));

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
    gl_pass_bind(&pass, {LR_BIND_IMAGES, images->images}, {LR_BIND_DRAWS, images->draws});
    return gl_pass_run(images->scene->ctx, &pass);
}
