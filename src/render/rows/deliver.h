/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Merged rows to the sink, in order; rows that came in parts are put together. */
#ifndef LR_RENDER_DELIVER_H
#define LR_RENDER_DELIVER_H

#include "model/lors/elements.h"
#include "render/rows/merge.h"

/* A row, or the part of it that some of its points make. */
struct lr_row_part {
    int64_t row; /* of the grid, or of the points */
    int64_t count;
    bool begins, ends; /* with its first point; with its last one */
};

struct lr_deliverer {
    int64_t num_lors;
    int threads;
    const lr_log *log;
    const struct lr_row_block_sink *blocks; /* takes whole rows; NULL: the sink takes all */
    const struct lr_packed_element *lent;   /* elements of the parts, one after the other; or NULL: */
    struct lr_packed_element *elements;     /* owned: the same */
    int64_t num_elements, max_elements;
    struct lr_row_part *parts; /* owned */
    int64_t num_parts, max_parts;
    struct lr_row_extent *extents; /* owned: rows of a block */
    int64_t max_extents;
    struct lr_owned_row numbers;     /* as sinks want them, of some parts */
    struct lr_elements carried;      /* of a row that has not ended */
    struct lr_row_delivery delivery; /* of carried rows; its sink is the sink of all */
};

/* Set num_lors, threads, log, blocks and delivery's sink and log, zero the rest. */
void lr_deliverer_finish(struct lr_deliverer *deliverer);

/* Room for more elements, which the caller fills: they follow those that are there. errors, here and
 * below: LR_FAILED, out of memory, logged. */
lr_status lr_deliverer_reserve(struct lr_deliverer *deliverer, int64_t num_elements);
lr_status lr_deliverer_add(struct lr_deliverer *deliverer, const struct lr_row_part *part);

/* Hands over a row that is in none of these parts: a whole one, or one's elements of some points, in their
 * order. */
lr_status lr_deliverer_take(struct lr_deliverer *deliverer, const struct lr_row_part *part,
                            const struct lr_elements *elements);

/* Hands over what there is, from the lender's memory where it was lent, and forgets it. errors: also what the sink says. */
lr_status lr_deliverer_deliver(struct lr_deliverer *deliverer);

#endif
