/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/raster/picture.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* What is read back of one image's tile. */
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

static void fill_pixels(const lr_scanner *scanner, const struct tile *tile, lr_pixel *pixels)
{
    for (int k = 0; k < tile->size[0] * tile->size[1]; k++)
        pixels[k] = make_pixel(scanner, tile->hits[k], tile->path_mm[k]);
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
    if (status == LR_OK) fill_pixels(plan->scanner, &tile, pixels);
    free(tile.path_mm);
    free(tile.hits);
    return status;
}
