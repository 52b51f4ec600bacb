/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/rows/deliver.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/parallel.h"

#include <stdlib.h>

/* Elements that are converted at once, unless one row has more, and by one thread: of the host's caches
 * they take a part. Blocks are handed over as they are, and begin threads for each. */
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

static const struct lr_packed_element *elements_of(const struct lr_deliverer *deliverer)
{
    return deliverer->lent != NULL ? deliverer->lent : deliverer->elements;
}

static lr_status convert(struct lr_deliverer *deliverer, int64_t first, int64_t count)
{
    struct conversion conversion = {elements_of(deliverer) + first, &deliverer->numbers};
    LR_TRY(lr_owned_row_reserve(&deliverer->numbers, count, deliverer->log));
    lr_parallel_for(deliverer->threads, count, SHARE, convert_share, &conversion);
    return LR_OK;
}

static lr_status end_carried(struct lr_deliverer *deliverer, const struct lr_row_part *part)
{
    struct lr_elements *carried = &deliverer->carried;
    if (!part->ends) return LR_OK;
    LR_TRY(lr_elements_merge(carried, deliverer->num_lors, deliverer->log));
    return lr_row_deliver(&deliverer->delivery, part->row, carried);
}

/* Puts a row together; the points of its parts follow each other. */
static lr_status carry(struct lr_deliverer *deliverer, const struct lr_row_part *part, const lr_row *numbers)
{
    struct lr_elements *carried = &deliverer->carried;
    carried->count = part->begins ? 0 : carried->count;
    for (int64_t k = 0; k < numbers->count; k++)
        LR_TRY(lr_elements_add(carried, numbers->lor[k], numbers->probability[k], deliverer->log));
    return end_carried(deliverer, part);
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

static lr_status deliver_parts(struct lr_deliverer *deliverer, int64_t begin, int64_t end)
{
    const lr_row_sink *sink = deliverer->delivery.sink;
    int64_t first = 0;
    for (int64_t k = begin; k < end; k++) {
        const struct lr_row_part *part = &deliverer->parts[k];
        const lr_row numbers = {part->row, part->count, deliverer->numbers.lor + first,
                                deliverer->numbers.probability + first};
        LR_TRY(part->begins && part->ends ? sink->take(sink->user, &numbers) : carry(deliverer, part, &numbers));
        first += part->count;
    }
    return LR_OK;
}

static bool goes_in_block(const struct lr_deliverer *deliverer, const struct lr_row_part *part)
{
    return deliverer->blocks != NULL && part->begins && part->ends;
}

/* Parts that are handed over together. */
struct together {
    int64_t begin, end;   /* of the parts */
    int64_t first, count; /* elements */
};

static void find_end(const struct lr_deliverer *deliverer, struct together *together)
{
    const struct lr_row_part *parts = deliverer->parts;
    const bool in_block = goes_in_block(deliverer, &parts[together->begin]);
    const int64_t most = in_block ? MOST_OF_BLOCK : MOST_AT_ONCE;
    int64_t end = together->begin + 1;
    together->count = parts[together->begin].count;
    while (end < deliverer->num_parts && together->count + parts[end].count <= most &&
           goes_in_block(deliverer, &parts[end]) == in_block)
        together->count += parts[end++].count;
    together->end = end;
}

static lr_status deliver_block(struct lr_deliverer *deliverer, const struct together *together)
{
    const struct lr_row_part *parts = deliverer->parts + together->begin;
    const int64_t num_rows = together->end - together->begin;
    LR_TRY(lr_grow(&deliverer->extents, &deliverer->max_extents, num_rows,
                   &(struct lr_items){sizeof(*deliverer->extents), "matrix rows", deliverer->log}));
    for (int64_t k = 0; k < num_rows; k++) deliverer->extents[k] = (struct lr_row_extent){parts[k].row, parts[k].count};
    const struct lr_row_block block = {.rows = deliverer->extents,
                                       .num_rows = num_rows,
                                       .num_elements = together->count,
                                       .elements = elements_of(deliverer) + together->first,
                                       .threads = deliverer->threads};
    return deliverer->blocks->take(deliverer->blocks->user, &block);
}

lr_status lr_deliverer_deliver(struct lr_deliverer *deliverer)
{
    struct together together = {0};
    while (together.begin < deliverer->num_parts) {
        find_end(deliverer, &together);
        if (goes_in_block(deliverer, &deliverer->parts[together.begin])) {
            LR_TRY(deliver_block(deliverer, &together));
        } else {
            LR_TRY(convert(deliverer, together.first, together.count));
            LR_TRY(deliver_parts(deliverer, together.begin, together.end));
        }
        together.begin = together.end;
        together.first += together.count;
    }
    deliverer->num_parts = deliverer->num_elements = 0;
    deliverer->lent = NULL;
    return LR_OK;
}
