/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "correspondence/plan.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"

#include <stdlib.h>

/* State of one call of lr_row_batches_deliver. */
struct reading {
    const struct lr_row_batches *batches;
    const struct lr_rows *rows;
    struct lr_row_delivery delivery;
    struct lr_batch batch;
    struct lr_elements *lists;  /* [max_rows], one per row of the batch */
    struct lr_elements carried; /* elements of a row that the previous batch left unfinished */
    int64_t carried_row;        /* -1: none */
    int64_t next_row;           /* next row to deliver, counted from the first */
};

static void read_share(void *user, int64_t begin, int64_t end, int worker)
{
    struct reading *reading = user;
    const struct lr_row_batches *batches = reading->batches;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        struct lr_elements *list = &reading->lists[k];
        list->count = 0;
        if (batches->fill(batches->user, &reading->batch.rows[k], list) != LR_OK ||
            lr_elements_merge(list, reading->batches->plan->lors->count, reading->batches->log) != LR_OK)
            list->count = -1; /* marks a failure, which has been logged */
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
    while (reading->next_row < row) LR_TRY(deliver(reading, reading->next_row, &none));
    return LR_OK;
}

static lr_status deliver_carried(struct reading *reading)
{
    const int64_t row = reading->carried_row;
    if (row < 0) return LR_OK;
    reading->carried_row = -1;
    LR_TRY(lr_elements_merge(&reading->carried, reading->batches->plan->lors->count, reading->batches->log));
    LR_TRY(deliver_empty_until(reading, row));
    LR_TRY(deliver(reading, row, &reading->carried));
    reading->carried.count = 0;
    return LR_OK;
}

static lr_status read_all(struct reading *reading)
{
    const struct lr_row_batches *batches = reading->batches;
    const int64_t num_rows = reading->rows->end - reading->rows->begin;
    const struct lr_rows *rows = reading->rows;
    struct lr_plan_cursor cursor = {0};
    struct lr_plan_work work = {.rows = rows, .window = lr_pair_window_all(batches->plan->lors)};
    if (rows->pairs != NULL) { /* images without these pairs are left out */
        work.window = lr_pair_window_begin(batches->plan->lors, rows->pairs, rows->num_pairs);
        work.window.end = rows->num_pairs;
    }
    while (lr_plan_next(batches->plan, &work, &cursor, &reading->batch)) {
        LR_TRY(batches->fetch(batches->user, &reading->batch));
        lr_parallel_for(batches->threads, reading->batch.num_rows, 1, read_share, reading);
        for (int k = 0; k < reading->batch.num_rows; k++) {
            const int64_t row = reading->batch.rows[k].row;
            const struct lr_elements *list = &reading->lists[k];
            if (list->count < 0) return LR_FAILED;
            if (reading->carried_row >= 0 && reading->carried_row != row) LR_TRY(deliver_carried(reading));
            if (reading->carried_row != row && (cursor.row != row || cursor.point == 0)) {
                LR_TRY(deliver_empty_until(reading, row));
                LR_TRY(deliver(reading, row, list));
                continue;
            }
            /* A row that the batch did not complete is carried over to the next batch. */
            for (int64_t at = 0; at < list->count; at++)
                LR_TRY(lr_elements_add(&reading->carried, list->list[at].lor, list->list[at].value, batches->log));
            reading->carried_row = row;
        }
        if (reading->carried_row >= 0 && cursor.row != reading->carried_row) LR_TRY(deliver_carried(reading));
        LR_TRY(lr_progress_report(batches->progress, "rendering the matrix", (double)cursor.row, (double)num_rows));
    }
    return deliver_empty_until(reading, num_rows);
}

lr_status lr_row_batches_deliver(const struct lr_row_batches *batches, const struct lr_rows *rows,
                                 const lr_row_sink *sink)
{
    const int max_rows = batches->plan->max_images;
    struct reading reading = {
        .batches = batches, .rows = rows, .delivery = {.sink = sink, .log = batches->log}, .carried_row = -1};
    reading.lists = lr_alloc(max_rows, sizeof(*reading.lists), "rows", batches->log);
    const lr_status status = reading.lists ? read_all(&reading) : LR_FAILED;
    for (int k = 0; reading.lists && k < max_rows; k++) lr_elements_finish(&reading.lists[k]);
    lr_elements_finish(&reading.carried);
    lr_owned_row_finish(&reading.delivery.row);
    free(reading.lists);
    return status;
}
