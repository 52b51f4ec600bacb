/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "correspondence/compute/rows/deliver.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/parallel.h"

#include <stdlib.h>

/* Numbers of elements that fit the caches of the host. MOST_AT_ONCE are converted at once, unless a single row has
 * more; a thread converts a SHARE of them. A block, whose receiver converts it by threads of its own, has
 * MOST_OF_BLOCK. */
enum { MOST_AT_ONCE = 1 << 20, MOST_OF_BLOCK = 1 << 22, SHARE = 1 << 15 };

/* Elements to be converted. */
struct conversion {
    const struct lr_packed_element *from;
    struct lr_owned_row *to;
};

void lr_deliverer_finish(struct lr_deliverer *deliverer)
{
    lr_owned_row_finish(&deliverer->delivery.row);
    lr_elements_finish(&deliverer->carried);
    lr_owned_row_finish(&deliverer->numbers);
    free(deliverer->parts);
    free(deliverer->extents);
    free(deliverer->elements);
}

lr_status lr_deliverer_reserve(struct lr_deliverer *deliverer, int64_t num_elements)
{
    return lr_grow(&deliverer->elements, &deliverer->max_elements, deliverer->num_elements + num_elements,
                   &(struct lr_items){sizeof(*deliverer->elements), "matrix elements", deliverer->log});
}

lr_status lr_deliverer_add(struct lr_deliverer *deliverer, const struct lr_row_part *part)
{
    LR_TRY(lr_grow(&deliverer->parts, &deliverer->max_parts, deliverer->num_parts + 1,
                   &(struct lr_items){sizeof(*deliverer->parts), "matrix rows", deliverer->log}));
    deliverer->parts[deliverer->num_parts++] = *part;
    return LR_OK;
}

static void convert_share(void *user, int64_t begin, int64_t end, int worker)
{
    const struct conversion *conversion = user;
    const struct lr_packed_element *from = conversion->from;
    int64_t *lor = conversion->to->lor;
    double *probability = conversion->to->probability;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        lor[k] = from[k].lor;
        probability[k] = (double)from[k].value;
    }
}

/* Delivers the carried row after its last part. */
static lr_status end_carried(struct lr_deliverer *deliverer, const struct lr_row_part *part)
{
    struct lr_elements *carried = &deliverer->carried;
    if (!part->ends) return LR_OK;
    LR_TRY(lr_elements_merge(carried, deliverer->num_lors, deliverer->log));
    return lr_row_deliver(&deliverer->delivery, part->row, carried);
}

lr_status lr_deliverer_take(struct lr_deliverer *deliverer, const struct lr_row_part *part,
                            const struct lr_elements *elements)
{
    struct lr_elements *carried = &deliverer->carried;
    if (part->begins && part->ends) return lr_row_deliver(&deliverer->delivery, part->row, elements);
    carried->count = part->begins ? 0 : carried->count;
    for (int64_t k = 0; k < elements->count; k++) {
        const struct lr_element *element = &elements->list[k];
        LR_TRY(lr_elements_add(carried, element->lor, element->value, deliverer->log));
    }
    return end_carried(deliverer, part);
}

static bool goes_in_block(const struct lr_deliverer *deliverer, const struct lr_row_part *part)
{
    return deliverer->blocks != NULL && part->begins && part->ends;
}

lr_status lr_deliverer_deliver(struct lr_deliverer *deliverer)
{
    const struct lr_packed_element *all = deliverer->borrowed != NULL ? deliverer->borrowed : deliverer->elements;
    int64_t end = 0, first = 0, count = 0; /* the end of the current parts, and their range of elements */
    for (int64_t begin = 0; begin < deliverer->num_parts; begin = end, first += count) {
        const struct lr_row_part *parts = deliverer->parts + begin;
        const struct lr_packed_element *elements = all + first;
        const bool in_block = goes_in_block(deliverer, parts);
        const int64_t most = in_block ? MOST_OF_BLOCK : MOST_AT_ONCE, left = deliverer->num_parts - begin;
        int64_t num_parts = 1;
        count = parts[0].count;
        while (num_parts < left && count + parts[num_parts].count <= most &&
               goes_in_block(deliverer, &parts[num_parts]) == in_block)
            count += parts[num_parts++].count;
        end = begin + num_parts;

        if (in_block) {
            LR_TRY(lr_grow(&deliverer->extents, &deliverer->max_extents, num_parts,
                           &(struct lr_items){sizeof(*deliverer->extents), "matrix rows", deliverer->log}));
            for (int64_t k = 0; k < num_parts; k++)
                deliverer->extents[k] = (struct lr_row_extent){parts[k].row, parts[k].count};
            const struct lr_row_block block = {.rows = deliverer->extents,
                                               .num_rows = num_parts,
                                               .num_elements = count,
                                               .elements = elements,
                                               .threads = deliverer->threads};
            LR_TRY(deliverer->blocks->take(deliverer->blocks->user, &block));
            continue;
        }
        struct conversion conversion = {elements, &deliverer->numbers};
        LR_TRY(lr_owned_row_reserve(&deliverer->numbers, count, deliverer->log));
        lr_parallel_for(deliverer->threads, count, SHARE, convert_share, &conversion);
        const lr_row_sink *sink = deliverer->delivery.sink;
        const int64_t *lor = deliverer->numbers.lor;
        const double *probability = deliverer->numbers.probability;
        for (const struct lr_row_part *part = parts; part < parts + num_parts; part++) {
            struct lr_elements *carried = &deliverer->carried;
            if (part->begins && part->ends) {
                LR_TRY(sink->take(sink->user, &(lr_row){part->row, part->count, lor, probability}));
            } else {
                /* A row's parts arrive in the order of its points. */
                carried->count = part->begins ? 0 : carried->count;
                for (int64_t k = 0; k < part->count; k++)
                    LR_TRY(lr_elements_add(carried, lor[k], probability[k], deliverer->log));
                LR_TRY(end_carried(deliverer, part));
            }
            lor += part->count;
            probability += part->count;
        }
    }
    deliverer->num_parts = deliverer->num_elements = 0;
    deliverer->borrowed = NULL;
    return LR_OK;
}

/* --- receiving --- */

/* When a copy to the host is queued, the number of elements is not known yet. It is estimated from the previous
 * part. If the estimate is too low, all elements are copied again. */

/* Alignment of elements in a readback: whole lines of the host's caches. */
enum { ALIGNMENT = 256 };

void lr_receiver_close(struct lr_receiver *receiver)
{
    for (int k = 0; k < 2; k++) gl_readback_finish(&receiver->readbacks[k]);
}

/* Offset of the elements in a readback; the tally comes first. */
static int64_t elements_offset(int num_rows)
{
    return (lr_merge_tally_bytes(num_rows) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Queues the copy of the tally and of the first `count` merged elements to the host. */
static lr_status send(struct lr_receiver *receiver, const struct lr_merge *merge, int num_rows, int64_t count)
{
    struct gl_readback *readback = &receiver->readbacks[receiver->current];
    const struct gl_range rows = lr_merge_rows(merge);
    const struct gl_buffer_range tally = {.from = merge->tally, .bytes = lr_merge_tally_bytes(num_rows)};
    const struct gl_buffer_range elements = {.from = rows.buffer,
                                             .from_offset = rows.offset,
                                             .to_offset = elements_offset(num_rows),
                                             .bytes = count * (int64_t)sizeof(struct lr_packed_element)};
    /* A readback that grows gets a quarter more than it needs, because later parts may be larger. */
    const int64_t bytes = elements.to_offset + elements.bytes;
    readback->ctx = receiver->ctx;
    readback->label = "received matrix rows";
    if (bytes > readback->size_bytes) LR_TRY(gl_readback_reserve(readback, bytes + bytes / 4));

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
    const double per_point = receiver->elements_of_point > 0.0 ? 1.1 * receiver->elements_of_point
                                                               : (double)merge->capacity / merge->max_points;
    const int64_t guess = 1024 + (int64_t)(per_point * part->num_points);
    LR_TRY(lr_merge_run(merge, part));
    return send(receiver, merge, num_rows, guess < merge->capacity ? guess : merge->capacity);
}

lr_status lr_receiver_finish(struct lr_receiver *receiver, const struct lr_merge *merge,
                             const struct lr_merge_part *part, struct lr_received *received)
{
    const int num_rows = lr_merge_num_rows(merge, part->num_points);
    for (;;) {
        struct gl_readback *readback = &receiver->readbacks[receiver->current];
        LR_TRY(gl_readback_wait(readback));
        received->tally = (const void *)readback->mapped;
        received->elements = (const void *)(readback->mapped + elements_offset(num_rows));
        const struct lr_merge_tally *tally = received->tally;
        const int64_t count = tally->starts[num_rows];
        if (tally->listed > merge->capacity || tally->misfits > 0) return LR_OK;
        receiver->elements_of_point = (double)count / part->num_points;
        if (count <= receiver->num_sent) return LR_OK;
        LR_TRY(send(receiver, merge, num_rows, count)); /* the estimate was too low */
    }
}
