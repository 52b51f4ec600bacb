/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/raster/forward.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"

#include <stdlib.h>

/* The block of shaders/raster/macropixel.glsl. */
struct scatter_pass {
    int32_t tile_size[2];
    int32_t lors_size[2];
    uint32_t num_lors;
    uint32_t unused[3];
};
_Static_assert(sizeof(struct scatter_pass) == 32, "the shaders' layout");

/* Rows are short enough that a window's last one wastes little. */
enum { LOR_TEXTURE_WIDTH = 4096 };

/* Edge of a group of shaders/raster/scatter.comp. */
enum { SCATTER_EDGE = 16 };

struct lr_lor_texture lr_lor_texture_create(struct gl_context *ctx, int64_t num_lors)
{
    const int64_t height = (num_lors + LOR_TEXTURE_WIDTH - 1) / LOR_TEXTURE_WIDTH;
    struct gl_target *target = gl_target_create(ctx, &(struct gl_target_params){
                                                         .label = "LOR values",
                                                         .width = LOR_TEXTURE_WIDTH,
                                                         .height = height > 0 ? (int)height : 1,
                                                         .colour_formats = {GL_R32F},
                                                     });
    return (struct lr_lor_texture){.target = target, .num_lors = num_lors};
}

void lr_lor_texture_destroy(struct lr_lor_texture *lors)
{
    gl_target_destroy(lors->target);
    *lors = (struct lr_lor_texture){0};
}

int64_t lr_lor_texture_capacity(const struct gl_context *ctx, int64_t bytes)
{
    int64_t rows = gl_context_limits(ctx)->max_texture_size;
    const int64_t row_bytes = LOR_TEXTURE_WIDTH * (int64_t)sizeof(float);
    if (bytes > 0 && bytes / row_bytes < rows) {
        rows = bytes / row_bytes;
    }
    return (rows > 0 ? rows : 1) * LOR_TEXTURE_WIDTH;
}

/* The part of the texture that full rows fill, and the part row after them. */
static void split_rows(const struct lr_lor_texture *lors, struct gl_box *full, struct gl_box *rest)
{
    const int rows = (int)(lors->num_lors / LOR_TEXTURE_WIDTH);
    *full = (struct gl_box){.width = LOR_TEXTURE_WIDTH, .height = rows};
    *rest =
        (struct gl_box){.y = rows, .width = (int)(lors->num_lors % LOR_TEXTURE_WIDTH), .height = 1};
}

lr_status lr_lor_texture_upload(struct lr_lor_texture *lors, const float *values)
{
    struct gl_box full, rest;
    split_rows(lors, &full, &rest);
    if (full.height > 0) {
        LR_TRY(gl_texture_upload_rect(lors->target->colours[0], &full, values));
    }
    return rest.width == 0
               ? LR_OK
               : gl_texture_upload_rect(lors->target->colours[0], &rest,
                                        values + (int64_t)full.height * LOR_TEXTURE_WIDTH);
}

lr_status lr_lor_texture_read(const struct lr_lor_texture *lors, float *values)
{
    struct gl_box full, rest;
    split_rows(lors, &full, &rest);
    if (full.height > 0) {
        LR_TRY(gl_texture_read(lors->target->colours[0], &full, values));
    }
    return rest.width == 0 ? LR_OK
                           : gl_texture_read(lors->target->colours[0], &rest,
                                             values + (int64_t)full.height * LOR_TEXTURE_WIDTH);
}

/* --- sums --- */

/* Of each LOR in floats, in the mean. */
enum { MOST_TERMS = 1024 };

static lr_status open_doubles(struct lr_texture_sums *sums)
{
    const int64_t count = sums->lors.num_lors;
    if (sums->sums == NULL) {
        sums->sums = lr_alloc(count, sizeof(*sums->sums), "sums of LORs", sums->log);
        sums->read = lr_alloc(count, sizeof(*sums->read), "sums of LORs", sums->log);
    }
    return sums->sums != NULL && sums->read != NULL ? LR_OK : LR_FAILED;
}

/* From the texture to the doubles. */
static lr_status add_texture(struct lr_texture_sums *sums)
{
    const float zero = 0.0f;
    LR_TRY(lr_lor_texture_read(&sums->lors, sums->read));
    gl_texture_clear(sums->lors.target->colours[0], &zero);
    for (int64_t k = 0; k < sums->lors.num_lors; k++) {
        sums->sums[k] += (double)sums->read[k];
    }
    sums->rays = 0;
    return LR_OK;
}

lr_status lr_texture_sums_take(struct lr_texture_sums *sums, int64_t rays)
{
    sums->rays += rays;
    if (sums->rays / MOST_TERMS <= sums->lors.num_lors) {
        return LR_OK;
    }
    LR_TRY(open_doubles(sums));
    return add_texture(sums);
}

lr_status lr_texture_sums_read(struct lr_texture_sums *sums, float *values)
{
    if (sums->sums == NULL) {
        return lr_lor_texture_read(&sums->lors, values);
    }
    LR_TRY(add_texture(sums));
    for (int64_t k = 0; k < sums->lors.num_lors; k++) {
        values[k] = (float)sums->sums[k];
    }
    return LR_OK;
}

void lr_texture_sums_finish(struct lr_texture_sums *sums)
{
    free(sums->sums);
    free(sums->read);
    sums->sums = NULL;
    sums->read = NULL;
}

/* --- scattering --- */

lr_status lr_scatter_init(struct lr_scatter *scatter)
{
    struct lr_rays_define rays;
    lr_rays_define_init(&rays, scatter->plan->rays);
    struct gl_program_params params = {.defines = rays.defines, .label = "scatter to LORs"};
    if (scatter->by_points) {
        params.vertex = "raster/scatter.vert";
        params.fragment = "raster/value.frag";
    } else {
        params.compute = "raster/scatter.comp";
    }
    scatter->program = gl_program_start(scatter->scene->ctx, &params);
    return scatter->program ? LR_OK : LR_FAILED;
}

void lr_scatter_finish(struct lr_scatter *scatter)
{
    gl_program_destroy(scatter->program);
    *scatter = (struct lr_scatter){0};
}

static void draw_points(const struct lr_scatter *scatter, const struct lr_batch *batch,
                        const struct lr_lor_texture *lors, struct gl_pass *pass)
{
    pass->target = lors->target;
    pass->blending = GL_BLENDING_ADD;
    pass->barriers = GL_SHADER_IMAGE_ACCESS_BARRIER_BIT; /* the next batch clears its images */
    pass->primitive = GL_POINTS;
    pass->vertices = scatter->plan->tile[0] * scatter->plan->tile[1];
    pass->instances = batch->num_images;
}

static void add_atomically(const struct lr_scatter *scatter, const struct lr_batch *batch,
                           const struct lr_lor_texture *lors, struct gl_pass *pass)
{
    const bool has_floats = gl_context_limits(scatter->scene->ctx)->nv_float_atomics;
    pass->images[LR_IMAGE_LORS] = (struct gl_image){.texture = lors->target->colours[0],
                                                    .format = has_floats ? GL_R32F : GL_R32UI};
    pass->barriers = GL_SHADER_IMAGE_ACCESS_BARRIER_BIT | GL_TEXTURE_UPDATE_BARRIER_BIT |
                     GL_FRAMEBUFFER_BARRIER_BIT;
    pass->groups[0] = batch->num_images;
    pass->groups[1] = gl_divide_up(scatter->plan->tile[0], SCATTER_EDGE);
    pass->groups[2] = gl_divide_up(scatter->plan->tile[1], SCATTER_EDGE);
}

lr_status lr_scatter_run(struct lr_scatter *scatter, const struct lr_correspondence *images,
                         const struct lr_batch *batch, struct lr_lor_texture *lors)
{
    const int *tile = scatter->plan->tile;
    const struct scatter_pass uniforms = {
        .tile_size = {tile[0], tile[1]},
        .lors_size = {lors->target->size[0], lors->target->size[1]},
        .num_lors = (uint32_t)lors->num_lors,
    };
    struct gl_pass pass = {
        .label = "scatter to LORs",
        .program = scatter->program,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
    };
    (scatter->by_points ? draw_points : add_atomically)(scatter, batch, lors, &pass);
    lr_scene_bind(scatter->scene, &pass);
    pass.buffers[LR_BIND_IMAGES].buffer = images->images;
    pass.textures[LR_UNIT_CORRESPONDENCE] = images->atlas->colours[0];
    return gl_pass_run(scatter->scene->ctx, &pass);
}
