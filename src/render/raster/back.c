/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/raster/back.h"

#include "base/log.h"
#include "common/bindings.h"
#include "gl/timer.h"

/* The block of shaders/raster/tile_pass.glsl. */
struct tile_pass {
    int32_t full_tile[2], source_tile[2], target_tile[2], target_size[2], lors_size[2];
    uint32_t num_lors;
    uint32_t unused;
};
_Static_assert(sizeof(struct tile_pass) == 48, "the shaders' layout");

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
    gather->gather =
        gl_program_start(ctx, &(struct gl_program_params){.vertex = "raster/tile.vert",
                                                          .fragment = "raster/gather.frag",
                                                          .defines = rays.defines,
                                                          .label = "gather"});
    gather->reduce =
        gl_program_start(ctx, &(struct gl_program_params){.vertex = "raster/tile.vert",
                                                          .fragment = "raster/reduce.frag",
                                                          .label = "reduce"});
    gather->collect =
        gl_program_start(ctx, &(struct gl_program_params){.vertex = "raster/collect.vert",
                                                          .fragment = "raster/value.frag",
                                                          .label = "collect"});
    return gather->gather && gather->reduce && gather->collect ? LR_OK : LR_FAILED;
}

/* Tiles halve, rounded up, until 1 x 1 is left; the first halving always happens. */
static lr_status make_sums(struct lr_gather *gather)
{
    int tile[2] = {gather->plan->tile[0], gather->plan->tile[1]};
    do {
        const int k = gather->num_halvings;
        for (int axis = 0; axis < 2; axis++) {
            tile[axis] = (tile[axis] + 1) / 2;
            gather->tiles[k][axis] = tile[axis];
        }
        gather->sums[k] =
            gl_target_create(gather->scene->ctx, &(struct gl_target_params){
                                                     .label = "partial sums",
                                                     .width = gather->plan->columns * tile[0],
                                                     .height = gather->plan->rows * tile[1],
                                                     .colour_formats = {GL_R32F},
                                                 });
        if (gather->sums[k] == NULL) {
            return LR_FAILED;
        }
        gather->num_halvings++;
    } while (tile[0] > 1 || tile[1] > 1);
    return LR_OK;
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
    gather->rows = gl_buffer_create(
        gather->scene->ctx,
        &(struct gl_buffer_params){.label = "rows of the batch",
                                   .size_bytes = gather->plan->max_images *
                                                 (int64_t)sizeof(struct lr_plan_row)});
    return gather->image && gather->rows ? LR_OK : LR_FAILED;
}

lr_status lr_gather_init(struct lr_gather *gather, struct lr_scene *scene,
                         const struct lr_plan *plan, int64_t num_voxels)
{
    *gather = (struct lr_gather){.scene = scene, .plan = plan, .num_voxels = num_voxels};
    lr_status status = make_programs(gather);
    if (status == LR_OK) {
        status = make_sums(gather);
    }
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
    for (int k = 0; k < gather->num_halvings; k++) {
        gl_target_destroy(gather->sums[k]);
    }
    gl_program_destroy(gather->collect);
    gl_program_destroy(gather->reduce);
    gl_program_destroy(gather->gather);
    *gather = (struct lr_gather){0};
}

void lr_gather_clear(struct lr_gather *gather)
{
    gl_target_clear(gather->image, NULL);
}

/* Halving `k`, as a pass that still lacks its program and sources. */
static struct gl_pass halving_pass(const struct lr_gather *gather, int k,
                                   const struct lr_correspondence *images,
                                   const struct lr_batch *batch)
{
    struct gl_pass pass = {
        .label = k == 0 ? "gather from LORs" : "halve the sums",
        .target = gather->sums[k],
        .primitive = GL_TRIANGLE_STRIP,
        .vertices = 4,
        .instances = batch->num_images,
    };
    lr_scene_bind(gather->scene, &pass);
    pass.buffers[LR_BIND_IMAGES].buffer = images->images;
    return pass;
}

static struct tile_pass halving_uniforms(const struct lr_gather *gather, int k)
{
    const int *full = gather->plan->tile;
    const int *source = k == 0 ? full : gather->tiles[k - 1];
    const int *target = gather->tiles[k];
    return (struct tile_pass){
        .full_tile = {full[0], full[1]},
        .source_tile = {source[0], source[1]},
        .target_tile = {target[0], target[1]},
        .target_size = {gather->sums[k]->size[0], gather->sums[k]->size[1]},
    };
}

static lr_status run_gather(struct lr_gather *gather, const struct lr_correspondence *images,
                            const struct lr_batch *batch, const struct lr_lor_texture *lors)
{
    struct tile_pass uniforms = halving_uniforms(gather, 0);
    uniforms.lors_size[0] = lors->target->size[0];
    uniforms.lors_size[1] = lors->target->size[1];
    uniforms.num_lors = (uint32_t)lors->num_lors;
    struct gl_pass pass = halving_pass(gather, 0, images, batch);
    pass.program = gather->gather;
    pass.uniforms = &uniforms;
    pass.uniform_bytes = sizeof(uniforms);
    pass.textures[LR_UNIT_CORRESPONDENCE] = images->atlas->colours[0];
    pass.textures[LR_UNIT_LORS] = lors->target->colours[0];
    return gl_pass_run(gather->scene->ctx, &pass);
}

static lr_status run_reduce(struct lr_gather *gather, int k, const struct lr_correspondence *images,
                            const struct lr_batch *batch)
{
    const struct tile_pass uniforms = halving_uniforms(gather, k);
    struct gl_pass pass = halving_pass(gather, k, images, batch);
    pass.program = gather->reduce;
    pass.uniforms = &uniforms;
    pass.uniform_bytes = sizeof(uniforms);
    pass.textures[LR_UNIT_SUMS] = gather->sums[k - 1]->colours[0];
    return gl_pass_run(gather->scene->ctx, &pass);
}

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
    };
    pass.buffers[LR_BIND_ROWS].buffer = gather->rows;
    pass.textures[LR_UNIT_SUMS] = gather->sums[gather->num_halvings - 1]->colours[0];
    return gl_pass_run(gather->scene->ctx, &pass);
}

/* Halves the sums until one is left of each image, and adds up those of each voxel. */
static lr_status run_reductions(struct lr_gather *gather, const struct lr_correspondence *images,
                                const struct lr_batch *batch)
{
    for (int k = 1; k < gather->num_halvings; k++) {
        LR_TRY(run_reduce(gather, k, images, batch));
    }
    return run_collect(gather, batch);
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
    const lr_status reduced = run_reductions(gather, images, batch);
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
