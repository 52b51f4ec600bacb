/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/raster/back.h"

#include "base/log.h"
#include "common/bindings.h"
#include "gl/timer.h"

/* The block of shaders/raster/gather.comp. */
struct gather_pass {
    int32_t tile_size[2], lors_size[2];
    uint32_t num_lors;
    uint32_t unused[3];
};
_Static_assert(sizeof(struct gather_pass) == 32, "the shaders' layout");

/* The block of shaders/raster/collect.vert. */
struct collect_pass {
    int32_t image_size[2];
    int32_t columns;
    int32_t unused;
};
_Static_assert(sizeof(struct lr_plan_row) == 16, "the shaders' layout");

enum { IMAGE_WIDTH = 4096 };

static lr_status make_programs(struct lr_gather *gather)
{
    struct gl_context *ctx = gather->scene->ctx;
    struct lr_rays_define rays;
    lr_rays_define_init(&rays, gather->plan->rays);
    gather->gather = gl_program_start(
        ctx, &(struct gl_program_params){
                 .compute = "raster/gather.comp", .defines = rays.defines, .label = "gather"});
    gather->collect =
        gl_program_start(ctx, &(struct gl_program_params){.vertex = "raster/collect.vert",
                                                          .fragment = "raster/value.frag",
                                                          .label = "collect"});
    return gather->gather && gather->collect ? LR_OK : LR_FAILED;
}

static lr_status make_image(struct lr_gather *gather)
{
    const int64_t height = (gather->num_voxels + IMAGE_WIDTH - 1) / IMAGE_WIDTH;
    gather->image = gl_target_create(gather->scene->ctx, &(struct gl_target_params){
                                                             .label = "voxel sums",
                                                             .width = IMAGE_WIDTH,
                                                             .height = (int)height,
                                                             .colour_formats = {GL_R32F},
                                                         });
    gather->sums = gl_target_create(gather->scene->ctx, &(struct gl_target_params){
                                                            .label = "sums of images",
                                                            .width = gather->plan->columns,
                                                            .height = gather->plan->rows,
                                                            .colour_formats = {GL_R32F},
                                                        });
    gather->rows = gl_buffer_create(
        gather->scene->ctx,
        &(struct gl_buffer_params){.label = "rows of the batch",
                                   .size_bytes = gather->plan->max_images *
                                                 (int64_t)sizeof(struct lr_plan_row)});
    return gather->image && gather->sums && gather->rows ? LR_OK : LR_FAILED;
}

lr_status lr_gather_init(struct lr_gather *gather, struct lr_scene *scene,
                         const struct lr_plan *plan, int64_t num_voxels)
{
    *gather = (struct lr_gather){.scene = scene, .plan = plan, .num_voxels = num_voxels};
    lr_status status = make_programs(gather);
    if (status == LR_OK) {
        status = make_image(gather);
    }
    if (status != LR_OK) {
        lr_gather_finish(gather);
    }
    return status;
}

void lr_gather_finish(struct lr_gather *gather)
{
    gl_target_destroy(gather->image);
    gl_buffer_destroy(gather->rows);
    gl_target_destroy(gather->sums);
    gl_program_destroy(gather->collect);
    gl_program_destroy(gather->gather);
    *gather = (struct lr_gather){0};
}

void lr_gather_clear(struct lr_gather *gather)
{
    gl_target_clear(gather->image, NULL);
}

static lr_status run_gather(struct lr_gather *gather, const struct lr_correspondence *images,
                            const struct lr_batch *batch, const struct lr_lor_texture *lors)
{
    const int *tile = gather->plan->tile;
    const struct gather_pass uniforms = {
        .tile_size = {tile[0], tile[1]},
        .lors_size = {lors->target->size[0], lors->target->size[1]},
        .num_lors = (uint32_t)lors->num_lors,
    };
    struct gl_pass pass = {
        .label = "gather from LORs",
        .program = gather->gather,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .images[LR_IMAGE_SUMS] = {.texture = gather->sums->colours[0], .access = GL_WRITE_ONLY},
        .groups = {batch->num_images, 1, 1},
        .barriers = GL_TEXTURE_FETCH_BARRIER_BIT | GL_TEXTURE_UPDATE_BARRIER_BIT |
                    GL_SHADER_IMAGE_ACCESS_BARRIER_BIT,
    };
    lr_scene_bind(gather->scene, &pass);
    pass.buffers[LR_BIND_IMAGES].buffer = images->images;
    pass.textures[LR_UNIT_CORRESPONDENCE] = images->atlas->colours[0];
    pass.textures[LR_UNIT_LORS] = lors->target->colours[0];
    return gl_pass_run(gather->scene->ctx, &pass);
}

/* Adds up the images of each voxel. */
static lr_status run_collect(struct lr_gather *gather, const struct lr_batch *batch)
{
    const struct collect_pass uniforms = {
        .image_size = {gather->image->size[0], gather->image->size[1]},
        .columns = gather->plan->columns,
    };
    LR_TRY(gl_buffer_upload(gather->rows, 0, batch->num_rows * (int64_t)sizeof(*batch->rows),
                            batch->rows));
    struct gl_pass pass = {
        .label = "collect voxels",
        .program = gather->collect,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .target = gather->image,
        .blending = GL_BLENDING_ADD,
        .primitive = GL_POINTS,
        .vertices = batch->num_rows,
        .instances = 1,
        .barriers = GL_SHADER_IMAGE_ACCESS_BARRIER_BIT, /* the next batch writes its sums */
    };
    pass.buffers[LR_BIND_ROWS].buffer = gather->rows;
    pass.textures[LR_UNIT_SUMS] = gather->sums->colours[0];
    return gl_pass_run(gather->scene->ctx, &pass);
}

lr_status lr_gather_run(struct lr_gather *gather, const struct lr_correspondence *images,
                        const struct lr_batch *batch, const struct lr_lor_texture *lors)
{
    if (batch->num_images == 0) {
        return LR_OK;
    }
    gl_stopwatch_begin(gather->gathers);
    const lr_status status = run_gather(gather, images, batch, lors);
    gl_stopwatch_end(gather->gathers);
    LR_TRY(status);
    gl_stopwatch_begin(gather->reductions);
    const lr_status reduced = run_collect(gather, batch);
    gl_stopwatch_end(gather->reductions);
    return reduced;
}

lr_status lr_gather_read(const struct lr_gather *gather, float *values)
{
    const struct gl_texture *image = gather->image->colours[0];
    const int rows = (int)(gather->num_voxels / IMAGE_WIDTH);
    const int rest = (int)(gather->num_voxels % IMAGE_WIDTH);
    if (rows > 0) {
        LR_TRY(
            gl_texture_read(image, &(struct gl_box){.width = IMAGE_WIDTH, .height = rows}, values));
    }
    return rest == 0
               ? LR_OK
               : gl_texture_read(image, &(struct gl_box){.y = rows, .width = rest, .height = 1},
                                 values + (int64_t)rows * IMAGE_WIDTH);
}
