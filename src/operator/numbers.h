/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Numbers of vectors on the host, in either precision. */
#ifndef LR_OPERATOR_NUMBERS_H
#define LR_OPERATOR_NUMBERS_H

#include <lr/vector.h>

static inline double lr_number_get(const lr_vector *vector, int64_t at)
{
    return vector->precision == LR_FLOAT64 ? ((const double *)vector->values)[at]
                                           : (double)((const float *)vector->values)[at];
}

static inline void lr_number_put(const lr_vector *vector, int64_t at, double value)
{
    if (vector->precision == LR_FLOAT64)
        ((double *)vector->values)[at] = value;
    else
        ((float *)vector->values)[at] = (float)value;
}

/* The first number that is not finite, or -1. */
int64_t lr_numbers_find_not_finite(const lr_vector *vector);

#endif
