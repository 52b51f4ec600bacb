/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/numbers.h"

#include <math.h>

/* Values looked at before the answer is read: the loop inside has no branch. */
enum { BLOCK = 4096 };

static bool block_is_finite(const lr_vector *vector, int64_t begin, int64_t end)
{
    int wrong = 0;
    if (vector->precision == LR_FLOAT64) {
        const double *values = vector->values;
        for (int64_t k = begin; k < end; k++) wrong |= !isfinite(values[k]);
    } else {
        const float *values = vector->values;
        for (int64_t k = begin; k < end; k++) wrong |= !isfinite(values[k]);
    }
    return !wrong;
}

int64_t lr_numbers_find_not_finite(const lr_vector *vector)
{
    for (int64_t begin = 0; begin < vector->count; begin += BLOCK) {
        const int64_t end = begin + BLOCK < vector->count ? begin + BLOCK : vector->count;
        if (block_is_finite(vector, begin, end)) continue;
        for (int64_t k = begin; k < end; k++)
            if (!block_is_finite(vector, k, k + 1)) return k;
    }
    return -1;
}
