/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * From batches of images to rows in order, whatever computes the images. */
#ifndef LR_RENDER_ROW_BATCHES_H
#define LR_RENDER_ROW_BATCHES_H

#include "model/lors/elements.h"
#include "render/plan.h"

/* The source of a batch's elements. */
struct lr_row_source {
    /* Fills *batch with what follows the cursor; false when nothing is left, as lr_plan_next. Only
     * the batch's rows need be set. */
    bool (*next)(void *user, const struct lr_rows *rows, struct lr_plan_cursor *cursor, struct lr_batch *batch);
    /* Computes a batch and brings it to the host; called for one batch at a time. */
    lr_status (*fetch)(void *user, const struct lr_batch *batch);
    /* Appends the elements of one row of that batch, in any order, repeats allowed. Called from
     * several threads at once. */
    lr_status (*fill)(void *user, const struct lr_plan_row *row, struct lr_elements *list);
    void *user;
};

struct lr_row_batches {
    struct lr_row_source source;
    int64_t num_lors;
    int max_rows; /* in a batch */
    int threads;
    const lr_log *log;
    const lr_progress *progress;
};

/* The next batch of a source whose batches a plan makes, with all LORs. */
bool lr_row_batches_plan(struct lr_plan *plan, const struct lr_rows *rows, struct lr_plan_cursor *cursor,
                         struct lr_batch *batch);

/* Hands every row to the sink in order, empty ones too, each sorted and without repeats; rows whose
 * points fall into several batches are put together. */
lr_status lr_row_batches_deliver(const struct lr_row_batches *batches, const struct lr_rows *rows,
                                 const lr_row_sink *sink);

#endif
