/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/raster/forward.h"

#include "base/log.h"
#include "common/bindings.h"
#include "render/raster/back.h"

/* The block of shaders/raster/scatter.vert. */
struct scatter_pass {
    int32_t tile_size[2], lors_size[2];
    uint32_t num_lors;
    float factor;
    uint32_t unused[2];
};
_Static_assert(sizeof(struct scatter_pass) == 32, "the shaders' layout");

/* Number of terms of a LOR in the LOR image, in the mean. */
enum { MOST_TERMS = 1024 };

lr_status lr_scatter_init(struct lr_scatter *scatter, struct lr_scene *scene, const struct lr_plan *plan,
                          int64_t num_voxels)
{
    struct lr_rays_define rays;
    lr_rays_define_init(&rays, plan->rays);
    *scatter = (struct lr_scatter){.scene = scene, .plan = plan};
    scatter->scatter = gl_program_start(scene->ctx, &(struct gl_program_params){.vertex = "raster/scatter.vert",
                                                                                .fragment = "raster/value.frag",
                                                                                .defines = rays.defines,
                                                                                .label = "scatter to LORs"});
    scatter->voxels = lr_texels_create(scene->ctx, "voxels that emit", num_voxels);
    if (scatter->scatter == NULL || scatter->voxels.target == NULL) {
        lr_scatter_finish(scatter);
        return LR_FAILED;
    }
    return LR_OK;
}

void lr_scatter_finish(struct lr_scatter *scatter)
{
    lr_texels_destroy(&scatter->total);
    lr_texels_destroy(&scatter->voxels);
    gl_program_destroy(scatter->add);
    gl_program_destroy(scatter->scatter);
    *scatter = (struct lr_scatter){0};
}

void lr_scatter_begin(struct lr_scatter *scatter)
{
    lr_texels_destroy(&scatter->total);
    scatter->rays = 0;
}

/* From the LOR image to the total. */
static lr_status add_image(struct lr_scatter *scatter, struct lr_texels *lors)
{
    struct gl_context *ctx = scatter->scene->ctx;
    if (scatter->total.target == NULL) scatter->total = lr_texels_create(ctx, "sums of LOR images", lors->count);
    if (scatter->add == NULL) scatter->add = lr_reduce_start(ctx, 1);
    if (scatter->total.target == NULL || scatter->add == NULL) return LR_FAILED;
    const int *size = lors->target->size;
    const struct lr_reduce_pass uniforms = {.source_tile = {size[0], size[1]}, .target_tile = {size[0], size[1]}};
    struct gl_pass pass = {
        .label = "add the LOR image",
        .program = scatter->add,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .target = scatter->total.target,
        .blending = GL_BLENDING_ADD,
        .primitive = GL_TRIANGLE_STRIP,
        .vertices = 4,
        .instances = 1,
    };
    pass.textures[LR_UNIT_SUMS] = lors->target->colours[0];
    LR_TRY(gl_pass_run(ctx, &pass));
    gl_target_clear(lors->target, NULL);
    scatter->rays = 0;
    return LR_OK;
}

lr_status lr_scatter_run(struct lr_scatter *scatter, const struct lr_correspondence *images,
                         const struct lr_batch *batch, struct lr_texels *lors)
{
    const int *tile = scatter->plan->tile, *size = lors->target->size;
    const struct scatter_pass uniforms = {
        .tile_size = {tile[0], tile[1]},
        .lors_size = {size[0], size[1]},
        .num_lors = (uint32_t)lors->count,
        .factor = scatter->factor,
    };
    struct gl_pass pass = {
        .label = "scatter to LORs",
        .program = scatter->scatter,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .target = lors->target,
        .blending = GL_BLENDING_ADD,
        .primitive = GL_POINTS,
        .vertices = tile[0] * tile[1],
        .instances = batch->num_images,
    };
    lr_scene_bind(scatter->scene, &pass);
    pass.buffers[LR_BIND_IMAGES].buffer = images->images;
    pass.textures[LR_UNIT_CORRESPONDENCE] = images->atlas->colours[0];
    pass.textures[LR_UNIT_VOXELS] = scatter->voxels.target->colours[0];
    LR_TRY(gl_pass_run(scatter->scene->ctx, &pass));
    scatter->rays += (int64_t)batch->num_images * tile[0] * tile[1];
    return scatter->rays / MOST_TERMS > lors->count ? add_image(scatter, lors) : LR_OK;
}

lr_status lr_scatter_end(struct lr_scatter *scatter, struct lr_texels *lors, lr_vector *values)
{
    if (scatter->total.target == NULL) return lr_texels_get(lors, values);
    LR_TRY(add_image(scatter, lors));
    return lr_texels_get(&scatter->total, values);
}
