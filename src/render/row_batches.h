/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
  * Rows in order from batches of images, for all methods that compute images. */
#ifndef LR_RENDER_ROW_BATCHES_H
#define LR_RENDER_ROW_BATCHES_H

#include "model/lors/elements.h"
#include "render/plan.h"

/* The source of a batch's elements. */
struct lr_row_source {
    struct lr_plan *plan; /* of the batches */
    /* Computes a batch and copies it to the host; called for one batch after the other. */
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

/* Hands every row to the sink in order, empty ones too, each sorted and without repeats; rows whose
 * points fall into several batches are put together. */
lr_status lr_row_batches_deliver(const struct lr_row_batches *batches, const struct lr_rows *rows,
                                 const lr_row_sink *sink);

#endif
