/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * How many elements there are is not known when the copy is queued: as many are copied as the parts before
 * make likely, and those that are missing then once more. */
#include "render/rows/receive.h"

#include "base/log.h"

/* Of elements in a readback: whole lines of the host's caches. */
enum { ALIGNMENT = 256 };

void lr_receiver_close(struct lr_receiver *receiver)
{
    for (int k = 0; k < 2; k++) gl_readback_finish(&receiver->readbacks[k]);
}

void lr_receiver_turn(struct lr_receiver *receiver)
{
    receiver->turn = 1 - receiver->turn;
}

/* Where elements begin in a readback, behind the tally. */
static int64_t elements_offset(int num_rows)
{
    return (lr_merge_tally_bytes(num_rows) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int64_t guess_elements(const struct lr_receiver *receiver, const struct lr_merge *merge, int num_points)
{
    const double per_point = receiver->elements_of_point > 0.0 ? 1.1 * receiver->elements_of_point
                                                               : (double)merge->capacity / merge->max_points;
    const int64_t guess = 1024 + (int64_t)(per_point * num_points);
    return guess < merge->capacity ? guess : merge->capacity;
}

/* A growing readback gets more than it needs now: it will have to grow again. */
static lr_status make_room(struct lr_receiver *receiver, int64_t bytes)
{
    struct gl_readback *readback = &receiver->readbacks[receiver->turn];
    readback->ctx = receiver->ctx;
    readback->label = "received matrix rows";
    return bytes > readback->size_bytes ? gl_readback_reserve(readback, bytes + bytes / 4) : LR_OK;
}

/* Queues the copy of what was merged, with so many elements. */
static lr_status send(struct lr_receiver *receiver, const struct lr_merge *merge, int num_rows, int64_t count)
{
    struct gl_readback *readback = &receiver->readbacks[receiver->turn];
    const struct gl_range rows = lr_merge_rows(merge);
    const struct gl_buffer_range tally = {.from = merge->tally, .bytes = lr_merge_tally_bytes(num_rows)};
    const struct gl_buffer_range elements = {.from = rows.buffer,
                                             .from_offset = rows.offset,
                                             .to_offset = elements_offset(num_rows),
                                             .bytes = count * (int64_t)sizeof(struct lr_packed_element)};
    LR_TRY(make_room(receiver, elements.to_offset + elements.bytes));
    LR_TRY(gl_readback_copy(readback, &tally));
    LR_TRY(gl_readback_copy(readback, &elements));
    gl_readback_send(readback);
    receiver->num_sent = count;
    return LR_OK;
}

lr_status lr_receiver_start(struct lr_receiver *receiver, const struct lr_merge *merge,
                            const struct lr_merge_part *part)
{
    const int num_rows = lr_merge_num_rows(merge, part->num_points);
    LR_TRY(lr_merge_run(merge, part));
    return send(receiver, merge, num_rows, guess_elements(receiver, merge, part->num_points));
}

static lr_status wait_for(struct lr_receiver *receiver, int num_rows, struct lr_received *received)
{
    struct gl_readback *readback = &receiver->readbacks[receiver->turn];
    LR_TRY(gl_readback_wait(readback));
    received->tally = (const void *)readback->mapped;
    received->elements = (const void *)(readback->mapped + elements_offset(num_rows));
    return LR_OK;
}

lr_status lr_receiver_finish(struct lr_receiver *receiver, const struct lr_merge *merge,
                             const struct lr_merge_part *part, struct lr_received *received)
{
    const int num_rows = lr_merge_num_rows(merge, part->num_points);
    LR_TRY(wait_for(receiver, num_rows, received));
    const struct lr_merge_tally *tally = received->tally;
    const int64_t count = tally->starts[num_rows];
    if (tally->listed > merge->capacity || tally->misfits > 0) return LR_OK;
    receiver->elements_of_point = (double)count / part->num_points;
    if (count <= receiver->num_sent) return LR_OK;
    LR_TRY(send(receiver, merge, num_rows, count));
    return wait_for(receiver, num_rows, received);
}
