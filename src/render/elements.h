/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A growing list of matrix elements of one row. */
#ifndef LR_RENDER_ELEMENTS_H
#define LR_RENDER_ELEMENTS_H

#include <lr/log.h>

struct lr_elements {
    int64_t *lor;
    double *probability;
    int64_t count, capacity;
    int64_t *lor_scratch; /* of sorting, same capacity */
    double *probability_scratch;
};

/* False, logged, when memory is short; the list stays valid. Zero-initialise before first use. */
bool lr_elements_reserve(struct lr_elements *elements, int64_t capacity, const lr_log *log);
void lr_elements_finish(struct lr_elements *elements);

/* Sorts by LOR and adds up repeats, in the order they were appended. All LORs < num_lors. */
void lr_elements_merge(struct lr_elements *elements, int64_t num_lors);

/* Appends; capacity must have been reserved. */
static inline void lr_elements_append(struct lr_elements *elements, int64_t lor,
                                      double probability)
{
    elements->lor[elements->count] = lor;
    elements->probability[elements->count++] = probability;
}

#endif
