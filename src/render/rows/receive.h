/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Merged rows from the device to the host's memory, while the host does something else. */
#ifndef LR_RENDER_RECEIVE_H
#define LR_RENDER_RECEIVE_H

#include "gl/readback.h"
#include "render/rows/merge.h"

/* Set ctx, zero the rest. */
struct lr_receiver {
    struct gl_context *ctx;
    struct gl_readback readbacks[2]; /* in turn */
    int turn;                        /* of the part at hand */
    int64_t num_sent;                /* elements on their way */
    double elements_of_point;        /* after merging, of the last part; 0 = not known */
};
void lr_receiver_close(struct lr_receiver *receiver);

/* What was received last stays where it is until the turn after the next. */
void lr_receiver_turn(struct lr_receiver *receiver);

/* Queues the merging of a part and the copy of its rows, and waits for nothing. errors, here and below:
 * as gl_readback's. */
lr_status lr_receiver_start(struct lr_receiver *receiver, const struct lr_merge *merge,
                            const struct lr_merge_part *part);

/* Rows of a part. */
struct lr_received {
    const struct lr_merge_tally *tally;
    const struct lr_packed_element *elements;
};

/* Waits for the rows of the part that was started last. Where the tally says that some lack elements,
 * what else there is means nothing. */
lr_status lr_receiver_finish(struct lr_receiver *receiver, const struct lr_merge *merge,
                             const struct lr_merge_part *part, struct lr_received *received);

#endif
