/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cpu/elements.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 11
#define NUM_DIGITS (1 << DIGIT_BITS)

void lr_cpu_elements_finish(struct lr_cpu_elements *elements)
{
    free(elements->list);
    free(elements->spare);
    *elements = (struct lr_cpu_elements){0};
}

static lr_status grow(struct lr_cpu_elements *elements, const lr_log *log)
{
    const int64_t capacity = elements->capacity > 0 ? 2 * elements->capacity : 4096;
    struct lr_cpu_element *list =
        lr_resize(elements->list, capacity, sizeof(*list), "matrix elements", log);
    if (list == NULL) {
        return LR_FAILED;
    }
    elements->list = list;
    struct lr_cpu_element *spare =
        lr_resize(elements->spare, capacity, sizeof(*spare), "matrix elements", log);
    if (spare == NULL) {
        return LR_FAILED;
    }
    elements->spare = spare;
    elements->capacity = capacity;
    return LR_OK;
}

lr_status lr_cpu_elements_add(struct lr_cpu_elements *elements, int64_t lor, double value,
                              const lr_log *log)
{
    if (elements->count == elements->capacity && grow(elements, log) != LR_OK) {
        return LR_FAILED;
    }
    elements->list[elements->count++] = (struct lr_cpu_element){lor, value};
    return LR_OK;
}

/* One stable pass of a radix sort from list to spare, which then change places. */
static void sort_by_digit(struct lr_cpu_elements *elements, int shift)
{
    int64_t places[NUM_DIGITS] = {0};
    for (int64_t k = 0; k < elements->count; k++) {
        places[(elements->list[k].lor >> shift) & (NUM_DIGITS - 1)]++;
    }
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
    struct lr_cpu_element *sorted = elements->spare;
    elements->spare = elements->list;
    elements->list = sorted;
}

void lr_cpu_elements_merge(struct lr_cpu_elements *elements, int64_t num_lors, double scale)
{
    for (int shift = 0; shift < 63 && (num_lors - 1) >> shift > 0; shift += DIGIT_BITS) {
        sort_by_digit(elements, shift);
    }
    struct lr_cpu_element *list = elements->list;
    int64_t num_out = 0;
    for (int64_t k = 0; k < elements->count;) {
        const int64_t lor = list[k].lor;
        double sum = 0;
        for (; k < elements->count && list[k].lor == lor; k++) {
            sum += list[k].value;
        }
        if (sum * scale > 0) {
            list[num_out++] = (struct lr_cpu_element){lor, sum * scale};
        }
    }
    elements->count = num_out;
}
