/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/raster/rows.h"

#include "base/log.h"
#include "base/mem.h"
#include "render/row_batches.h"

#include <stdlib.h>

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
