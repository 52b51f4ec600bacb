/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "render/raster/raster.h"
#include "render/row_batches.h"

#include <stdlib.h>
#include <string.h>

/* One texel of the atlas. */
struct hit {
    uint32_t crystal; /* of the secondary, + 1; 0 = none */
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

static int64_t lor_of(const lr_lors *lors, int i, int a, uint32_t other)
{
    const lr_scanner *scanner = lors->scanner;
    const int j = lr_scanner_module_of(scanner, (int)other);
    const int b = (int)other - scanner->first_crystal[j];
    const int64_t pair = lr_lors_pair(lors, i, j);
    const int crystals_i = scanner->first_crystal[i + 1] - scanner->first_crystal[i];
    const int crystals_j = scanner->first_crystal[j + 1] - scanner->first_crystal[j];
    return lors->offsets[pair] + (i < j ? (int64_t)a * crystals_j + b : (int64_t)b * crystals_i + a);
}

/* Adds up the equal crystals of one macropixel, R x R pixels from `corner` on. */
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

static lr_status read_image(const struct reading *reading, const struct lr_plan_image *image, struct lr_elements *list)
{
    const struct lr_plan *plan = reading->reader->plan;
    const lr_module *primary = &plan->scanner->modules[image->primary];
    const int64_t stride = (int64_t)plan->columns * plan->tile[0];
    struct hit distinct[LR_MAX_RASTER_RAYS * LR_MAX_RASTER_RAYS];
    for (int a = 0; a < primary->crystals[0] * primary->crystals[1]; a++) {
        const int p = a % primary->crystals[0], q = a / primary->crystals[0];
        const struct hit *corner = reading->atlas + (image->tile_y + (int64_t)q * plan->rays) * stride + image->tile_x +
                                   (int64_t)p * plan->rays;
        const int num_distinct = sum_macropixel(corner, stride, plan->rays, distinct);
        for (int k = 0; k < num_distinct; k++) {
            if (distinct[k].weight > 0.0f) {
                LR_TRY(lr_elements_add(list, lor_of(plan->lors, image->primary, a, distinct[k].crystal - 1),
                                       reading->factor * (double)distinct[k].weight, reading->reader->log));
            }
        }
    }
    return LR_OK;
}

static lr_status fill_row(void *user, const struct lr_plan_row *row, struct lr_elements *list)
{
    const struct reading *reading = user;
    for (uint32_t k = row->first_image; k < row->end_image; k++)
        LR_TRY(read_image(reading, &reading->batch.images[k], list));
    return LR_OK;
}

static bool next_batch(void *user, const struct lr_rows *rows, struct lr_plan_cursor *cursor, struct lr_batch *batch)
{
    const struct reading *reading = user;
    return lr_row_batches_plan(reading->reader->plan, rows, cursor, batch);
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
    reading.atlas = lr_alloc((int64_t)size[0] * size[1], sizeof(struct hit), "correspondence images", reader->log);
    if (reading.atlas == NULL) return LR_FAILED;
    const struct lr_row_batches batches = {.source = {next_batch, fetch_batch, fill_row, &reading},
                                           .num_lors = reader->plan->lors->count,
                                           .max_rows = reader->plan->max_images,
                                           .threads = reader->threads,
                                           .log = reader->log,
                                           .progress = reader->progress};
    const lr_status status = lr_row_batches_deliver(&batches, rows, sink);
    free(reading.atlas);
    return status;
}

/* --- pictures --- */

/* The pixels that are read back of one image's tile. */
struct tile {
    int size[2];
    uint32_t (*hits)[2]; /* crystal of the secondary + 1, bits of the weight */
    float *path_mm;
};

static lr_pixel make_pixel(const lr_scanner *scanner, const uint32_t hit[2], float path_mm)
{
    if (hit[0] == 0) return (lr_pixel){.module = -1.0f, .r = -1.0f, .s = -1.0f};
    const int crystal = (int)hit[0] - 1;
    const int module = lr_scanner_module_of(scanner, crystal);
    const int within = crystal - scanner->first_crystal[module];
    lr_pixel pixel = {.module = (float)module,
                      .r = (float)(within % scanner->modules[module].crystals[0]),
                      .s = (float)(within / scanner->modules[module].crystals[0]),
                      .path_mm = path_mm};
    memcpy(&pixel.weight, &hit[1], sizeof(pixel.weight));
    return pixel;
}

static lr_status read_tile(const struct lr_correspondence *images, const struct lr_plan_image *image, struct tile *tile)
{
    const struct gl_box box = {.x = image->tile_x, .y = image->tile_y, .width = tile->size[0], .height = tile->size[1]};
    LR_TRY(gl_texture_read(images->atlas->colours[0], &box, tile->hits));
    return gl_texture_read(images->atlas->colours[1], &box, tile->path_mm);
}

/* Renders the image as a projection would, and reads it; a module that has none keeps a tile of
 * zeros. */
static lr_status render_tile(struct lr_correspondence *images, struct lr_plan *plan,
                             const struct lr_picture_request *request, struct tile *tile)
{
    const double(*point)[3] = (const double(*)[3])request->point_mm;
    const struct lr_rows rows = {.points_mm = point, .end = 1};
    const struct lr_plan_work work = {
        .rows = &rows,
        .window = lr_pair_window_all(plan->lors),
        .whole = true,
        .primary = &request->module,
    };
    struct lr_plan_cursor cursor = {0};
    struct lr_batch batch;
    lr_plan_next(plan, &work, &cursor, &batch);
    LR_TRY(lr_correspondence_render(images, &batch));
    return batch.num_images > 0 ? read_tile(images, &batch.images[0], tile) : LR_OK;
}

lr_status lr_picture_render(struct lr_correspondence *images, struct lr_plan *plan,
                            const struct lr_picture_request *request, lr_pixel *pixels)
{
    const lr_module *module = &plan->scanner->modules[request->module];
    const lr_log *log = gl_context_log(images->scene->ctx);
    struct tile tile = {.size = {module->crystals[0] * plan->rays, module->crystals[1] * plan->rays}};
    const int64_t count = (int64_t)tile.size[0] * tile.size[1];
    tile.hits = lr_alloc(count, sizeof(*tile.hits), "a correspondence image", log);
    tile.path_mm = lr_alloc(count, sizeof(*tile.path_mm), "a correspondence image", log);
    lr_status status = LR_FAILED;
    if (tile.hits && tile.path_mm) status = render_tile(images, plan, request, &tile);
    if (status == LR_OK)
        for (int k = 0; k < tile.size[0] * tile.size[1]; k++)
            pixels[k] = make_pixel(plan->scanner, tile.hits[k], tile.path_mm[k]);

    free(tile.path_mm);
    free(tile.hits);
    return status;
}
