/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/elements.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { DIGIT_BITS = 11, NUM_DIGITS = 1 << DIGIT_BITS };

static void *grow(void *block, int64_t capacity, bool *failed, const lr_log *log)
{
    void *bigger = lr_resize(block, capacity, 8, "a row of the matrix", log);
    *failed = *failed || bigger == NULL;
    return bigger ? bigger : block;
}

bool lr_elements_reserve(struct lr_elements *elements, int64_t capacity, const lr_log *log)
{
    _Static_assert(sizeof(double) == 8, "one size for all arrays");
    bool failed = false;
    if (capacity <= elements->capacity) {
        return true;
    }
    capacity += capacity / 2;
    elements->lor = grow(elements->lor, capacity, &failed, log);
    elements->probability = grow(elements->probability, capacity, &failed, log);
    elements->lor_scratch = grow(elements->lor_scratch, capacity, &failed, log);
    elements->probability_scratch = grow(elements->probability_scratch, capacity, &failed, log);
    if (!failed) {
        elements->capacity = capacity;
    }
    return !failed;
}

void lr_elements_finish(struct lr_elements *elements)
{
    free(elements->lor);
    free(elements->probability);
    free(elements->lor_scratch);
    free(elements->probability_scratch);
    *elements = (struct lr_elements){0};
}

static void swap_with_scratch(struct lr_elements *elements)
{
    int64_t *lor = elements->lor;
    double *probability = elements->probability;
    elements->lor = elements->lor_scratch;
    elements->probability = elements->probability_scratch;
    elements->lor_scratch = lor;
    elements->probability_scratch = probability;
}

/* One stable pass of a radix sort. */
static void sort_by_digit(struct lr_elements *elements, int shift)
{
    int64_t start[NUM_DIGITS + 1] = {0};
    for (int64_t k = 0; k < elements->count; k++) {
        start[((elements->lor[k] >> shift) & (NUM_DIGITS - 1)) + 1]++;
    }
    for (int digit = 0; digit < NUM_DIGITS; digit++) {
        start[digit + 1] += start[digit];
    }
    for (int64_t k = 0; k < elements->count; k++) {
        const int64_t to = start[(elements->lor[k] >> shift) & (NUM_DIGITS - 1)]++;
        elements->lor_scratch[to] = elements->lor[k];
        elements->probability_scratch[to] = elements->probability[k];
    }
    swap_with_scratch(elements);
}

static void add_repeats(struct lr_elements *elements)
{
    int64_t last = -1;
    for (int64_t k = 0; k < elements->count; k++) {
        if (last >= 0 && elements->lor[last] == elements->lor[k]) {
            elements->probability[last] += elements->probability[k];
        } else {
            last++;
            elements->lor[last] = elements->lor[k];
            elements->probability[last] = elements->probability[k];
        }
    }
    elements->count = last + 1;
}

void lr_elements_merge(struct lr_elements *elements, int64_t num_lors)
{
    for (int shift = 0; shift < 62 && (num_lors - 1) >> shift > 0; shift += DIGIT_BITS) {
        sort_by_digit(elements, shift);
    }
    add_repeats(elements);
}
