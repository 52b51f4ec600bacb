/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of the system matrix: lists to collect elements, rows that own their elements, blocks of many rows, and the
 * differences between two rows. */
#include "base/order.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/rows.h"

#include <lr/operator.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- rows --- */

lr_status lr_owned_row_reserve(struct lr_owned_row *row, int64_t room, const lr_log *log)
{
    static const char what[] = "a matrix row";
    if (room <= row->room) return LR_OK;
    int64_t both = row->room;
    LR_TRY(lr_grow(&row->lor, &both, room, &(struct lr_items){sizeof(*row->lor), what, log}));
    return lr_grow(&row->probability, &row->room, room, &(struct lr_items){sizeof(*row->probability), what, log});
}

lr_status lr_owned_row_copy(struct lr_owned_row *row, const lr_row *from, const lr_log *log)
{
    LR_TRY(lr_owned_row_reserve(row, from->count, log));
    row->count = from->count;
    if (row->count > 0) {
        memcpy(row->lor, from->lor, (size_t)row->count * sizeof(*row->lor));
        memcpy(row->probability, from->probability, (size_t)row->count * sizeof(*row->probability));
    }
    return LR_OK;
}

void lr_owned_row_finish(struct lr_owned_row *row)
{
    lr_free_all(row->lor, row->probability);
    *row = (struct lr_owned_row){0};
}

/* --- elements of a row --- */

void lr_elements_finish(struct lr_elements *elements)
{
    lr_free_all(elements->list, elements->spare);
    *elements = (struct lr_elements){0};
}

/* Reserves memory for `needed` elements and keeps the present ones. */
static lr_status reserve(struct lr_element **list, int64_t *capacity, int64_t needed, const lr_log *log)
{
    return lr_grow(list, capacity, needed, &(struct lr_items){sizeof(**list), "matrix elements", log});
}

lr_status lr_elements_add(struct lr_elements *elements, int64_t lor, double value, const lr_log *log)
{
    LR_TRY(reserve(&elements->list, &elements->capacity, elements->count + 1, log));
    elements->list[elements->count++] = (struct lr_element){lor, value};
    return LR_OK;
}

lr_status lr_elements_merge(struct lr_elements *elements, int64_t num_lors, const lr_log *log)
{
    LR_TRY(reserve(&elements->spare, &elements->spare_capacity, elements->count, log));
    const struct lr_elements from = *elements;
    if (lr_radix_sort(from.list, from.spare, sizeof(*from.list), from.count, num_lors))
        *elements = (struct lr_elements){from.spare, from.list, from.count, from.spare_capacity, from.capacity};
    struct lr_element *list = elements->list;
    int64_t num_out = 0;
    for (int64_t k = 0; k < elements->count;) {
        const int64_t lor = list[k].lor;
        double sum = 0;
        for (; k < elements->count && list[k].lor == lor; k++) sum += list[k].value;
        list[num_out++] = (struct lr_element){lor, sum};
    }
    elements->count = num_out;
    return LR_OK;
}

int64_t lr_elements_find(const struct lr_elements *elements, int64_t lor)
{
    int64_t low = 0, high = elements->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (elements->list[middle].lor < lor)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

lr_status lr_elements_assign(struct lr_elements *elements, const struct lr_elements *from, double scale,
                             const lr_log *log)
{
    LR_TRY(reserve(&elements->list, &elements->capacity, from->count, log));
    elements->count = 0;
    for (int64_t k = 0; k < from->count; k++) {
        const double value = from->list[k].value * scale;
        if (value > 0) elements->list[elements->count++] = (struct lr_element){from->list[k].lor, value};
    }
    return LR_OK;
}

lr_status lr_row_deliver(struct lr_row_delivery *delivery, int64_t row, const struct lr_elements *elements)
{
    struct lr_owned_row *out = &delivery->row;
    LR_TRY(lr_owned_row_reserve(out, elements->count, delivery->log));
    out->count = 0;
    for (int64_t k = 0; k < elements->count; k++) lr_owned_row_put(out, elements->list[k].lor, elements->list[k].value);
    const lr_row view = lr_owned_row_view(out, row);
    return delivery->sink->take(delivery->sink->user, &view);
}

/* --- blocks of rows --- */

static lr_status enter(void *user, const lr_row *row)
{
    const struct lr_row_entry *entry = user;
    return entry->rows.take(entry->rows.user, row);
}

lr_row_sink lr_row_entry_sink(struct lr_row_entry *entry)
{
    return (lr_row_sink){enter, entry};
}

const struct lr_row_block_sink *lr_row_entry_of(const lr_row_sink *sink)
{
    const struct lr_row_entry *entry = sink->take == enter ? sink->user : NULL;
    return entry != NULL ? &entry->blocks : NULL;
}

lr_status lr_row_block_unpack(const struct lr_row_block *block, const lr_row_sink *sink, const lr_log *log)
{
    struct lr_owned_row row = {0};
    const struct lr_packed_element *from = block->elements;
    lr_status status = LR_OK;
    for (int64_t r = 0; r < block->num_rows && status == LR_OK; r++) {
        const struct lr_row_extent *extent = &block->rows[r];
        status = lr_owned_row_reserve(&row, extent->count, log);
        if (status == LR_OK) {
            row.count = 0;
            for (int64_t k = 0; k < extent->count; k++) lr_owned_row_put(&row, from[k].lor, (double)from[k].value);
            from += extent->count;
            const lr_row view = lr_owned_row_view(&row, extent->row);
            status = sink->take(sink->user, &view);
        }
    }
    lr_owned_row_finish(&row);
    return status;
}

/* --- errors of rows --- */

lr_row_error lr_row_compare(const lr_row *row, const lr_row *reference)
{
    lr_row_error error = {0};
    double difference2 = 0.0, reference2 = 0.0, sum = 0.0;
    for (int64_t a = 0, b = 0; a < row->count || b < reference->count;) {
        const int64_t lor_a = a < row->count ? row->lor[a] : INT64_MAX;
        const int64_t lor_b = b < reference->count ? reference->lor[b] : INT64_MAX;
        const double value = lor_a <= lor_b ? row->probability[a] : 0.0;
        const double expected = lor_b <= lor_a ? reference->probability[b] : 0.0;
        const double difference = fabs(value - expected);
        difference2 += difference * difference;
        reference2 += expected * expected;
        sum += value;
        error.sum += expected;
        error.largest = fmax(error.largest, expected);
        error.largest_error = fmax(error.largest_error, difference);
        error.num_elements += expected > 0.0;
        error.num_unexpected += value > 0.0 && !(expected > 0.0);
        if (expected > 0.0 && !(value > 0.0)) {
            error.num_missed++;
            error.missed_weight += expected;
        }
        a += lor_a <= lor_b;
        b += lor_b <= lor_a;
    }
    error.relative_l2 = sqrt(difference2 / reference2);
    error.sum_error = (sum - error.sum) / error.sum;
    error.largest_error /= error.largest;
    error.missed_weight /= error.sum;
    return error;
}

int lr_lors_primary(const lr_lors *lors, int64_t lor, const double point_mm[3])
{
    const lr_lor pair = lr_lors_describe(lors, lor);
    double distance2[2] = {0.0, 0.0};
    for (int n = 0; n < 2; n++) {
        double centre_mm[3];
        lr_scanner_detection_centre(lors->scanner, n == 0 ? pair.module_i : pair.module_j, centre_mm);
        for (int k = 0; k < 3; k++) distance2[n] += (centre_mm[k] - point_mm[k]) * (centre_mm[k] - point_mm[k]);
    }
    /* If both distances are equal, the result is the lower module, i. */
    return distance2[1] - distance2[0] > 1e-9 * distance2[1] ? pair.module_j : pair.module_i;
}
