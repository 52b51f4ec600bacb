/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/lors/elements.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>

#define DIGIT_BITS 11
#define NUM_DIGITS (1 << DIGIT_BITS)

void lr_elements_finish(struct lr_elements *elements)
{
    free(elements->list);
    free(elements->spare);
    *elements = (struct lr_elements){0};
}

/* Room for `needed` elements, what is there kept. */
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

/* One stable pass of a radix sort from list to spare, which then change places. */
static void sort_by_digit(struct lr_elements *elements, int shift)
{
    int64_t places[NUM_DIGITS] = {0};
    for (int64_t k = 0; k < elements->count; k++) places[(elements->list[k].lor >> shift) & (NUM_DIGITS - 1)]++;
    int64_t sum = 0;
    for (int digit = 0; digit < NUM_DIGITS; digit++) {
        const int64_t count = places[digit];
        places[digit] = sum;
        sum += count;
    }
    for (int64_t k = 0; k < elements->count; k++) {
        const int64_t digit = (elements->list[k].lor >> shift) & (NUM_DIGITS - 1);
        elements->spare[places[digit]++] = elements->list[k];
    }
    struct lr_element *sorted = elements->spare;
    elements->spare = elements->list;
    elements->list = sorted;
    const int64_t capacity = elements->spare_capacity;
    elements->spare_capacity = elements->capacity;
    elements->capacity = capacity;
}

lr_status lr_elements_merge(struct lr_elements *elements, int64_t num_lors, const lr_log *log)
{
    LR_TRY(reserve(&elements->spare, &elements->spare_capacity, elements->count, log));
    for (int shift = 0; shift < 63 && (num_lors - 1) >> shift > 0; shift += DIGIT_BITS) sort_by_digit(elements, shift);
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
