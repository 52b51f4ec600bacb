/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "correspondence/plan.h"
#include "correspondence/raster/raster.h"

#include <stdlib.h>
#include <string.h>

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

/* Adds up the weights of each distinct crystal in a macropixel, which has rays x rays pixels from `corner` on. Returns
 * the number of distinct crystals. */
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
                LR_TRY(lr_elements_add(list, lor, reading->factor * (double)distinct[k].weight, reading->reader->log));
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
    reading.atlas = lr_alloc((int64_t)size[0] * size[1], sizeof(struct hit), "correspondence images", reader->log);
    if (reading.atlas == NULL) return LR_FAILED;
    const struct lr_row_batches batches = {.plan = reader->plan,
                                           .fetch = fetch_batch,
                                           .fill = fill_row,
                                           .user = &reading,
                                           .threads = reader->threads,
                                           .log = reader->log,
                                           .progress = reader->progress};
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
    uint32_t(*hits)[2] = lr_alloc(count, sizeof(*hits), "a correspondence image", log); /* laid out as struct hit */
    float *path_mm = lr_alloc(count, sizeof(*path_mm), "a correspondence image", log);
    lr_status status = hits != NULL && path_mm != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) {
        /* Renders the image as a projection does, and reads it. The pixels of a module without an image stay 0. */
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

    free(path_mm);
    free(hits);
    return status;
}
