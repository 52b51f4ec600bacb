/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One side of a projection: an image or LOR data, float or double. */
#ifndef LR_OPERATOR_SIDE_H
#define LR_OPERATOR_SIDE_H

#include <lr/log.h>
#include <stddef.h>

struct lr_side {
    const char *name; /* for sentences about memory */
    int64_t count;
    bool is_double;
    void *values; /* only read when it is an input */
};

static inline double lr_side_get(const struct lr_side *side, int64_t at)
{
    return side->is_double ? ((const double *)side->values)[at]
                           : (double)((const float *)side->values)[at];
}

static inline void lr_side_put(const struct lr_side *side, int64_t at, double value)
{
    if (side->is_double) {
        ((double *)side->values)[at] = value;
    } else {
        ((float *)side->values)[at] = (float)value;
    }
}

/* The first value that is not finite, or -1. */
int64_t lr_side_find_not_finite(const struct lr_side *side);

/* The same number of values, in the precision of either. */
void lr_side_copy(const struct lr_side *from, const struct lr_side *to);

/* Allocates side->values, zeroed. errors: LR_FAILED, logged. */
lr_status lr_side_alloc(struct lr_side *side, const lr_log *log);

#endif
