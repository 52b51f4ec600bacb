/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Delivery of merged rows to the sink, in order. Parts of a row are joined first. */
#ifndef LR_CORRESPONDENCE_COMPUTE_ROWS_DELIVER_H
#define LR_CORRESPONDENCE_COMPUTE_ROWS_DELIVER_H

#include "correspondence/compute/rows/merge.h"
#include "gl/transfer.h"
#include "model/lors/elements.h"

/* A row, or the part of a row that belongs to some of its points. */
struct lr_row_part {
    int64_t row; /* row of the grid, or of the points */
    int64_t count;
    bool begins, ends; /* the part has the first point of the row; it has the last point */
};

/* The caller sets num_lors, threads, log, blocks, and the sink and log of `delivery`. The other members are zero at
 * first. */
struct lr_deliverer {
    int64_t num_lors;
    int threads;
    const lr_log *log;
    const struct lr_row_block_sink *blocks;   /* takes whole rows; NULL = the sink takes all rows */
    const struct lr_packed_element *borrowed; /* elements of the parts, in a receiver's memory; or NULL */
    struct lr_packed_element *elements;       /* owned: elements of the parts, unless they are borrowed */
    int64_t num_elements, max_elements;
    struct lr_row_part *parts; /* owned */
    int64_t num_parts, max_parts;
    struct lr_row_extent *extents; /* owned: rows of a block */
    int64_t max_extents;
    struct lr_owned_row numbers;     /* rows of some parts, in the form that sinks take */
    struct lr_elements carried;      /* elements of a row that has not ended */
    struct lr_row_delivery delivery; /* delivery of carried rows; its sink takes all rows */
};

void lr_deliverer_finish(struct lr_deliverer *deliverer);

/* Makes room for more elements, which the caller then appends. errors, here and below: LR_FAILED if memory runs out,
 * logged. */
lr_status lr_deliverer_reserve(struct lr_deliverer *deliverer, int64_t num_elements);
lr_status lr_deliverer_add(struct lr_deliverer *deliverer, const struct lr_row_part *part);

/* Delivers another row immediately: a whole row, or the elements of some of its points, in order. */
lr_status lr_deliverer_take(struct lr_deliverer *deliverer, const struct lr_row_part *part,
                            const struct lr_elements *elements);

/* Delivers all parts, and removes them. errors: also those of the sink. */
lr_status lr_deliverer_deliver(struct lr_deliverer *deliverer);

/* --- receiving --- */

/* Copies of merged rows from the device to the host's memory, while the host works on other rows. */

/* The caller sets ctx, and zeroes the rest. */
struct lr_receiver {
    struct gl_context *ctx;
    struct gl_readback readbacks[2];
    int current;              /* the readback in use; the caller switches it to keep the previous part */
    int64_t num_sent;         /* number of elements whose copy is queued */
    double elements_of_point; /* elements per point of the last part, after merging; 0 = not known */
};
void lr_receiver_close(struct lr_receiver *receiver);

/* Queues the merging of a part and the copy of its rows, without waiting. errors, here and below: those of
 * gl_readback. */
lr_status lr_receiver_start(struct lr_receiver *receiver, const struct lr_merge *merge,
                            const struct lr_merge_part *part);

/* Rows of a part. */
struct lr_received {
    const struct lr_merge_tally *tally;
    const struct lr_packed_element *elements;
};

/* Waits for the rows of the part that was started last. The rows are invalid if the tally says that elements are
 * missing. */
lr_status lr_receiver_finish(struct lr_receiver *receiver, const struct lr_merge *merge,
                             const struct lr_merge_part *part, struct lr_received *received);

#endif
