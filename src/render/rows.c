/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/rows.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "model/elements.h"

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
    const struct lr_rows *rows;
    struct lr_row_delivery delivery;
    struct lr_batch batch;
    struct hit *atlas;          /* [rows of tiles in use * tile height][atlas width] */
    struct lr_elements *lists;  /* [max_images], one per row of the batch */
    struct lr_elements carried; /* of a row that the batch before left unfinished */
    int64_t carried_row;        /* -1: none */
    int64_t next_row;           /* to be delivered, counted from the first */
};

static int64_t lor_of(const lr_lors *lors, int i, int a, uint32_t other)
{
    const lr_scanner *scanner = lors->scanner;
    const int j = lr_scanner_module_of(scanner, (int)other);
    const int b = (int)other - scanner->first_crystal[j];
    const int64_t pair = lors->pair_of[(int64_t)i * scanner->num_modules + j];
    const int crystals_i = scanner->first_crystal[i + 1] - scanner->first_crystal[i];
    const int crystals_j = scanner->first_crystal[j + 1] - scanner->first_crystal[j];
    return lors->offsets[pair] +
           (i < j ? (int64_t)a * crystals_j + b : (int64_t)b * crystals_i + a);
}

/* Adds up the equal crystals of one macropixel, R x R pixels from `corner` on. */
static int sum_macropixel(const struct hit *corner, int64_t stride, int rays, struct hit *distinct)
{
    int num_distinct = 0;
    for (int y = 0; y < rays; y++) {
        for (int x = 0; x < rays; x++) {
            const struct hit hit = corner[y * stride + x];
            int k = 0;
            if (hit.crystal == 0) {
                continue;
            }
            while (k < num_distinct && distinct[k].crystal != hit.crystal) {
                k++;
            }
            if (k == num_distinct) {
                distinct[num_distinct++] = hit;
            } else {
                distinct[k].weight += hit.weight;
            }
        }
    }
    return num_distinct;
}

static lr_status read_image(const struct reading *reading, const struct lr_plan_image *image,
                            double factor, struct lr_elements *list)
{
    const struct lr_plan *plan = reading->reader->plan;
    const lr_module *primary = &plan->scanner->modules[image->primary];
    const int64_t stride = (int64_t)plan->columns * plan->tile[0];
    struct hit distinct[LR_MAX_RASTER_RAYS * LR_MAX_RASTER_RAYS];
    for (int a = 0; a < primary->crystals[0] * primary->crystals[1]; a++) {
        const int p = a % primary->crystals[0], q = a / primary->crystals[0];
        const struct hit *corner = reading->atlas +
                                   (image->tile_y + (int64_t)q * plan->rays) * stride +
                                   image->tile_x + (int64_t)p * plan->rays;
        const int num_distinct = sum_macropixel(corner, stride, plan->rays, distinct);
        for (int k = 0; k < num_distinct; k++) {
            if (distinct[k].weight > 0.0f) {
                LR_TRY(lr_elements_add(
                    list, lor_of(plan->lors, image->primary, a, distinct[k].crystal - 1),
                    factor * (double)distinct[k].weight, reading->reader->log));
            }
        }
    }
    return LR_OK;
}

static lr_status read_row(const struct reading *reading, const struct lr_plan_row *row,
                          struct lr_elements *list)
{
    const double factor = 1.0 / lr_rows_per_row(reading->rows);
    list->count = 0;
    for (uint32_t k = row->first_image; k < row->end_image; k++) {
        LR_TRY(read_image(reading, &reading->batch.images[k], factor, list));
    }
    return lr_elements_merge(list, reading->reader->plan->lors->count, reading->reader->log);
}

static void read_share(void *user, int64_t begin, int64_t end, int worker)
{
    struct reading *reading = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        if (read_row(reading, &reading->batch.rows[k], &reading->lists[k]) != LR_OK) {
            reading->lists[k].count = -1; /* its sentence is in the log */
        }
    }
}

static lr_status deliver(struct reading *reading, int64_t row, const struct lr_elements *list)
{
    reading->next_row = row + 1;
    return lr_row_deliver(&reading->delivery, reading->rows->begin + row, list);
}

static lr_status deliver_empty_until(struct reading *reading, int64_t row)
{
    const struct lr_elements none = {0};
    while (reading->next_row < row) {
        LR_TRY(deliver(reading, reading->next_row, &none));
    }
    return LR_OK;
}

static lr_status deliver_carried(struct reading *reading)
{
    const int64_t row = reading->carried_row;
    if (row < 0) {
        return LR_OK;
    }
    reading->carried_row = -1;
    LR_TRY(lr_elements_merge(&reading->carried, reading->reader->plan->lors->count,
                             reading->reader->log));
    LR_TRY(deliver_empty_until(reading, row));
    LR_TRY(deliver(reading, row, &reading->carried));
    reading->carried.count = 0;
    return LR_OK;
}

static lr_status carry(struct reading *reading, int64_t row, const struct lr_elements *list)
{
    for (int64_t k = 0; k < list->count; k++) {
        LR_TRY(lr_elements_add(&reading->carried, list->list[k].lor, list->list[k].value,
                               reading->reader->log));
    }
    reading->carried_row = row;
    return LR_OK;
}

/* Delivers the batch's rows; the one that the cursor stands in is carried over to the next. */
static lr_status deliver_batch(struct reading *reading, const struct lr_plan_cursor *cursor)
{
    for (int k = 0; k < reading->batch.num_rows; k++) {
        const int64_t row = reading->batch.rows[k].row;
        const struct lr_elements *list = &reading->lists[k];
        if (list->count < 0) {
            return LR_FAILED;
        }
        if (reading->carried_row >= 0 && reading->carried_row != row) {
            LR_TRY(deliver_carried(reading));
        }
        if (reading->carried_row == row || (cursor->row == row && cursor->point > 0)) {
            LR_TRY(carry(reading, row, list));
        } else {
            LR_TRY(deliver_empty_until(reading, row));
            LR_TRY(deliver(reading, row, list));
        }
    }
    if (reading->carried_row >= 0 && cursor->row != reading->carried_row) {
        return deliver_carried(reading);
    }
    return LR_OK;
}

static lr_status read_batch(struct reading *reading)
{
    const struct lr_row_reader *reader = reading->reader;
    LR_TRY(lr_correspondence_render(reader->images, &reading->batch));
    if (reading->batch.num_images > 0) {
        const struct gl_texture *atlas = reader->images->atlas->colours[0];
        LR_TRY(gl_texture_read(
            atlas,
            &(struct gl_box){.width = atlas->size[0],
                             .height = reading->batch.atlas_rows * reader->plan->tile[1]},
            reading->atlas));
    }
    lr_parallel_for(reader->threads, reading->batch.num_rows, 1, read_share, reading);
    return LR_OK;
}

static lr_status read_all(struct reading *reading)
{
    const struct lr_row_reader *reader = reading->reader;
    const struct lr_plan_work work = {.rows = reading->rows,
                                      .window = lr_plan_all_lors(reader->plan->lors)};
    const int64_t num_rows = reading->rows->end - reading->rows->begin;
    struct lr_plan_cursor cursor = {0};
    while (lr_plan_next(reader->plan, &work, &cursor, &reading->batch)) {
        LR_TRY(read_batch(reading));
        LR_TRY(deliver_batch(reading, &cursor));
        LR_TRY(lr_progress_report(reader->progress, "rendering the matrix", (double)cursor.row,
                                  (double)num_rows));
    }
    return deliver_empty_until(reading, num_rows);
}

lr_status lr_rows_read(const struct lr_row_reader *reader, const struct lr_rows *rows,
                       const lr_row_sink *sink)
{
    const struct lr_plan *plan = reader->plan;
    const int *atlas = reader->images->atlas->size;
    struct reading reading = {.reader = reader,
                              .rows = rows,
                              .delivery = {.sink = sink, .log = reader->log},
                              .carried_row = -1};
    reading.atlas = lr_alloc((int64_t)atlas[0] * atlas[1], sizeof(struct hit),
                             "correspondence images", reader->log);
    reading.lists = lr_alloc(plan->max_images, sizeof(*reading.lists), "rows", reader->log);
    lr_status status = reading.atlas && reading.lists ? read_all(&reading) : LR_FAILED;
    for (int k = 0; reading.lists && k < plan->max_images; k++) {
        lr_elements_finish(&reading.lists[k]);
    }
    lr_elements_finish(&reading.carried);
    lr_row_delivery_finish(&reading.delivery);
    free(reading.lists);
    free(reading.atlas);
    return status;
}
