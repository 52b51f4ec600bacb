/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "correspondence/plan.h"
#include "correspondence/raster/raster.h"
#include "gl/timer.h"
#include "gl/vectors.h"

#include <stdlib.h>
#include <string.h>

/* The uniform block of shaders/correspondence/raster/scatter.vert. */
struct scatter_pass {
    int32_t tile_size[2], lors_size[2];
    uint32_t num_lors;
    float factor;
    uint32_t unused[2];
};
_Static_assert(sizeof(struct scatter_pass) == 32, "the shaders' layout");

/* The LOR image is added to the total when it has this average number of terms per LOR. */
enum { MOST_TERMS = 1024 };

lr_status lr_scatter_init(struct lr_scatter *scatter, struct lr_scene *scene, const struct lr_plan *plan,
                          int64_t num_voxels)
{
    struct lr_rays_define rays;
    lr_rays_define_init(&rays, plan->rays);
    *scatter = (struct lr_scatter){.scene = scene, .plan = plan};
    scatter->scatter =
        gl_program_start(scene->ctx, &(struct gl_program_params){.vertex = "correspondence/raster/scatter.vert",
                                                                 .fragment = "correspondence/raster/value.frag",
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

static struct gl_program *reduce_start(struct gl_context *ctx, int step)
{
    const struct gl_define defines[] = {{"STEP", step == 1 ? "1" : "2"}, {0}};
    return gl_program_start(ctx, &(struct gl_program_params){.vertex = "correspondence/raster/cover.vert",
                                                             .fragment = "correspondence/raster/reduce.frag",
                                                             .defines = defines,
                                                             .label = "reduce"});
}

/* Adds the LOR image to the total, and clears it. */
static lr_status add_image(struct lr_scatter *scatter, struct lr_texels *lors)
{
    struct gl_context *ctx = scatter->scene->ctx;
    if (scatter->total.target == NULL) scatter->total = lr_texels_create(ctx, "sums of LOR images", lors->count);
    if (scatter->add == NULL) scatter->add = reduce_start(ctx, 1);
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
    if (scatter->total.target == NULL) return lr_texels_copy(lors, values, false);
    LR_TRY(add_image(scatter, lors));
    return lr_texels_copy(&scatter->total, values, false);
}

/* --- back --- */

/* The uniform block of shaders/correspondence/raster/gather.frag. Its first members are those of reduce.frag. */
struct gather_pass {
    struct lr_reduce_pass tiles;
    int32_t columns, num_images;
    uint32_t num_lors, unused;
};
_Static_assert(sizeof(struct gather_pass) == 32, "the shaders' layout");

/* The uniform block of shaders/correspondence/raster/collect.vert. */
struct collect_pass {
    int32_t image_size[2];
    int32_t columns;
    int32_t unused;
};
_Static_assert(sizeof(struct lr_plan_row) == 16, "the shaders' layout");

lr_status lr_gather_init(struct lr_gather *gather, struct lr_scene *scene, const struct lr_plan *plan,
                         int64_t num_voxels)
{
    *gather = (struct lr_gather){.scene = scene, .plan = plan};
    struct gl_context *ctx = gather->scene->ctx;
    struct lr_rays_define rays;
    lr_rays_define_init(&rays, gather->plan->rays);
    gather->gather = gl_program_start(ctx, &(struct gl_program_params){.vertex = "correspondence/raster/cover.vert",
                                                                       .fragment = "correspondence/raster/gather.frag",
                                                                       .defines = rays.defines,
                                                                       .label = "gather"});
    gather->reduce = reduce_start(ctx, 2);
    gather->collect = gl_program_start(ctx, &(struct gl_program_params){.vertex = "correspondence/raster/collect.vert",
                                                                        .fragment = "correspondence/raster/value.frag",
                                                                        .label = "collect"});
    lr_status status = gather->gather && gather->reduce && gather->collect ? LR_OK : LR_FAILED;

    /* A tile of one pixel is also halved once, because the first halving multiplies by the LOR values. */
    int tile[2] = {plan->tile[0], plan->tile[1]};
    bool is_last = false;
    while (status == LR_OK && !is_last) {
        const int k = gather->num_halvings++;
        for (int axis = 0; axis < 2; axis++) gather->tiles[k][axis] = tile[axis] = (tile[axis] + 1) / 2;
        gather->sums[k] = gl_target_create(ctx, &(struct gl_target_params){
                                                    .label = "sums of pixels",
                                                    .width = plan->columns * tile[0],
                                                    .height = plan->rows * tile[1],
                                                    .colour_formats = {GL_R32F},
                                                });
        status = gather->sums[k] != NULL ? LR_OK : LR_FAILED;
        is_last = (tile[0] <= 1 && tile[1] <= 1) || gather->num_halvings == LR_MOST_HALVINGS;
    }

    gather->image = lr_texels_create(scene->ctx, "voxel sums", num_voxels);
    gather->rows =
        gl_data_buffer(scene->ctx, "rows of the batch", plan->max_images * (int64_t)sizeof(struct lr_plan_row), NULL);
    if (status != LR_OK || gather->image.target == NULL || gather->rows == NULL) {
        lr_gather_finish(gather);
        return LR_FAILED;
    }
    return LR_OK;
}

void lr_gather_finish(struct lr_gather *gather)
{
    gl_buffer_destroy(gather->rows);
    lr_texels_destroy(&gather->image);
    for (int k = 0; k < gather->num_halvings; k++) gl_target_destroy(gather->sums[k]);
    gl_program_destroy(gather->collect);
    gl_program_destroy(gather->reduce);
    gl_program_destroy(gather->gather);
    *gather = (struct lr_gather){0};
}

/* Halves the edges of all tiles of the batch: each pixel becomes the sum of 2 x 2 pixels. The first halving also
 * multiplies by the LOR values. */
static lr_status halve(struct lr_gather *gather, int k, const struct lr_correspondence *images,
                       const struct lr_batch *batch, const struct lr_texels *lors)
{
    const int *source = k == 0 ? gather->plan->tile : gather->tiles[k - 1];
    const int *target = gather->tiles[k];
    const struct gather_pass uniforms = {
        .tiles = {.source_tile = {source[0], source[1]}, .target_tile = {target[0], target[1]}},
        .columns = gather->plan->columns,
        .num_images = batch->num_images,
        .num_lors = (uint32_t)lors->count,
    };
    struct gl_pass pass = {
        .label = k == 0 ? "gather from LORs" : "halve the sums",
        .program = k == 0 ? gather->gather : gather->reduce,
        .uniforms = &uniforms,
        .uniform_bytes = k == 0 ? sizeof(uniforms) : sizeof(uniforms.tiles),
        .target = gather->sums[k],
        .viewport = {0, 0, gather->sums[k]->size[0], batch->atlas_rows * target[1]},
        .primitive = GL_TRIANGLE_STRIP,
        .vertices = 4,
        .instances = 1,
    };
    if (k == 0) {
        lr_scene_bind(gather->scene, &pass);
        pass.buffers[LR_BIND_IMAGES].buffer = images->images;
        pass.textures[LR_UNIT_CORRESPONDENCE] = images->atlas->colours[0];
        pass.textures[LR_UNIT_LORS] = lors->target->colours[0];
    } else {
        pass.textures[LR_UNIT_SUMS] = gather->sums[k - 1]->colours[0];
    }
    return gl_pass_run(gather->scene->ctx, &pass);
}

lr_status lr_gather_run(struct lr_gather *gather, const struct lr_correspondence *images, const struct lr_batch *batch,
                        const struct lr_texels *lors)
{
    if (batch->num_images == 0) return LR_OK;
    gl_stopwatch_begin(gather->gathers);
    lr_status status = halve(gather, 0, images, batch, lors);
    gl_stopwatch_end(gather->gathers);
    gl_stopwatch_begin(gather->reductions);
    for (int k = 1; status == LR_OK && k < gather->num_halvings; k++) status = halve(gather, k, images, batch, lors);

    /* Adds the sums of all images to their voxels. */
    const int *size = gather->image.target->size;
    const struct collect_pass uniforms = {.image_size = {size[0], size[1]}, .columns = gather->plan->columns};
    struct gl_pass collect = {
        .label = "collect voxels",
        .program = gather->collect,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .target = gather->image.target,
        .blending = GL_BLENDING_ADD,
        .primitive = GL_POINTS,
        .vertices = batch->num_rows,
        .instances = 1,
    };
    collect.buffers[LR_BIND_ROWS].buffer = gather->rows;
    collect.textures[LR_UNIT_SUMS] = gather->sums[gather->num_halvings - 1]->colours[0];
    if (status == LR_OK)
        status = gl_buffer_upload(gather->rows, 0, batch->num_rows * (int64_t)sizeof(*batch->rows), batch->rows);
    if (status == LR_OK) status = gl_pass_run(gather->scene->ctx, &collect);
    gl_stopwatch_end(gather->reductions);
    return status;
}

/* One texel of the atlas. */
struct hit {
    uint32_t crystal; /* crystal of the secondary plus 1; 0 = no hit */
    float weight;
};
_Static_assert(sizeof(struct hit) == 8, "RG32UI");

/* State of one call of lr_rows_read. */
struct reading {
    const struct lr_row_reader *reader;
    double factor; /* 1 / points per row */
    struct lr_batch batch;
    struct hit *atlas; /* [rows of tiles in use * tile height][atlas width] */
};

/* Adds up the weights of each crystal in a macropixel of rays x rays pixels, whose first pixel is `corner`. Returns the
 * number of different crystals. */
static int sum_macropixel(const struct hit *corner, int64_t stride, int rays, struct hit *distinct)
{
    int num_distinct = 0;
    for (int y = 0; y < rays; y++) {
        for (int x = 0; x < rays; x++) {
            const struct hit hit = corner[y * stride + x];
            int k = 0;
            if (hit.crystal == 0) continue;
            while (k < num_distinct && distinct[k].crystal != hit.crystal) k++;
            if (k == num_distinct)
                distinct[num_distinct++] = hit;
            else
                distinct[k].weight += hit.weight;
        }
    }
    return num_distinct;
}

static lr_status fill_row(void *user, const struct lr_plan_row *row, struct lr_elements *list)
{
    const struct reading *reading = user;
    const struct lr_plan *plan = reading->reader->plan;
    const lr_scanner *scanner = plan->scanner;
    const int64_t stride = (int64_t)plan->columns * plan->tile[0];
    struct hit distinct[LR_MAX_RASTER_RAYS * LR_MAX_RASTER_RAYS];
    for (uint32_t index = row->first_image; index < row->end_image; index++) {
        const struct lr_plan_image *image = &reading->batch.images[index];
        const int i = image->primary, *crystals = scanner->modules[i].crystals;
        for (int a = 0; a < crystals[0] * crystals[1]; a++) {
            const int p = a % crystals[0], q = a / crystals[0];
            const struct hit *corner = reading->atlas + (image->tile_y + (int64_t)q * plan->rays) * stride +
                                       image->tile_x + (int64_t)p * plan->rays;
            const int num_distinct = sum_macropixel(corner, stride, plan->rays, distinct);
            for (int k = 0; k < num_distinct; k++) {
                if (!(distinct[k].weight > 0.0f)) continue;
                const int other = (int)(distinct[k].crystal - 1), j = lr_scanner_module_of(scanner, other);
                const int b = other - scanner->first_crystal[j];
                const int num_i = scanner->first_crystal[i + 1] - scanner->first_crystal[i];
                const int num_j = scanner->first_crystal[j + 1] - scanner->first_crystal[j];
                const int64_t lor = plan->lors->offsets[lr_lors_pair(plan->lors, i, j)] +
                                    (i < j ? (int64_t)a * num_j + b : (int64_t)b * num_i + a);
                LR_TRY(lr_elements_add(list, lor, reading->factor * (double)distinct[k].weight,
                                       reading->reader->params->log));
            }
        }
    }
    return LR_OK;
}

static lr_status fetch_batch(void *user, const struct lr_batch *batch)
{
    struct reading *reading = user;
    const struct lr_row_reader *reader = reading->reader;
    reading->batch = *batch;
    LR_TRY(lr_correspondence_render(reader->images, batch));
    const struct gl_texture *atlas = reader->images->atlas->colours[0];
    const struct gl_box box = {.width = atlas->size[0], .height = batch->atlas_rows * reader->plan->tile[1]};
    return batch->num_images > 0 ? gl_texture_read(atlas, &box, reading->atlas) : LR_OK;
}

lr_status lr_rows_read(const struct lr_row_reader *reader, const struct lr_rows *rows, const lr_row_sink *sink)
{
    const int *size = reader->images->atlas->size;
    struct reading reading = {.reader = reader, .factor = 1.0 / lr_rows_per_row(rows)};
    reading.atlas =
        lr_alloc((int64_t)size[0] * size[1], sizeof(struct hit), "correspondence images", reader->params->log);
    if (reading.atlas == NULL) return LR_FAILED;
    const struct lr_row_batches batches = {
        .plan = reader->plan, .fetch = fetch_batch, .fill = fill_row, .user = &reading, .params = reader->params};
    const lr_status status = lr_row_batches_deliver(&batches, rows, sink);
    free(reading.atlas);
    return status;
}

/* --- pictures --- */

lr_status lr_picture_render(struct lr_correspondence *images, struct lr_plan *plan, const double point_mm[3],
                            int module, lr_pixel *pixels)
{
    const lr_scanner *scanner = plan->scanner;
    const lr_log *log = gl_context_log(images->scene->ctx);
    const int *crystals = scanner->modules[module].crystals;
    const int size[2] = {crystals[0] * plan->rays, crystals[1] * plan->rays};
    const int64_t count = (int64_t)size[0] * size[1];
    uint32_t(*hits)[2] = lr_alloc(count, sizeof(*hits), "a correspondence image", log); /* laid out like struct hit */
    float *path_mm = lr_alloc(count, sizeof(*path_mm), "a correspondence image", log);
    lr_status status = hits != NULL && path_mm != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) {
        /* The image is rendered as in a projection, and then read. If the module has no image, no pixel has a hit. */
        const struct lr_rows rows = {.points_mm = (const double(*)[3])point_mm, .end = 1};
        const struct lr_plan_work work = {
            .rows = &rows, .window = lr_pair_window_all(plan->lors), .whole = true, .primary = &module};
        struct lr_plan_cursor cursor = {0};
        struct lr_batch batch;
        lr_plan_next(plan, &work, &cursor, &batch);
        status = lr_correspondence_render(images, &batch);
        struct gl_texture *const *colours = images->atlas->colours;
        const struct gl_box box = {.x = batch.num_images > 0 ? batch.images[0].tile_x : 0,
                                   .y = batch.num_images > 0 ? batch.images[0].tile_y : 0,
                                   .width = size[0],
                                   .height = size[1]};
        if (status == LR_OK && batch.num_images > 0) status = gl_texture_read(colours[0], &box, hits);
        if (status == LR_OK && batch.num_images > 0) status = gl_texture_read(colours[1], &box, path_mm);
    }
    for (int64_t k = 0; status == LR_OK && k < count; k++) {
        pixels[k] = (lr_pixel){.module = -1.0f, .r = -1.0f, .s = -1.0f};
        if (hits[k][0] == 0) continue;
        const int crystal = (int)hits[k][0] - 1, hit_module = lr_scanner_module_of(scanner, crystal);
        const int within = crystal - scanner->first_crystal[hit_module];
        const int columns = scanner->modules[hit_module].crystals[0];
        pixels[k] = (lr_pixel){.module = (float)hit_module,
                               .r = (float)(within % columns),
                               .s = (float)(within / columns),
                               .path_mm = path_mm[k]};
        memcpy(&pixels[k].weight, &hits[k][1], sizeof(pixels[k].weight));
    }

    lr_free_all(path_mm, hits);
    return status;
}
