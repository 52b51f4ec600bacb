/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/side.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

/* Values looked at before the answer is read: the loop inside has no branch. */
enum { BLOCK = 4096 };

static bool block_is_finite(const struct lr_side *side, int64_t begin, int64_t end)
{
    int wrong = 0;
    if (side->is_double) {
        const double *values = side->values;
        for (int64_t k = begin; k < end; k++) {
            wrong |= !isfinite(values[k]);
        }
    } else {
        const float *values = side->values;
        for (int64_t k = begin; k < end; k++) {
            wrong |= !isfinite(values[k]);
        }
    }
    return !wrong;
}

int64_t lr_side_find_not_finite(const struct lr_side *side)
{
    for (int64_t begin = 0; begin < side->count; begin += BLOCK) {
        const int64_t end = begin + BLOCK < side->count ? begin + BLOCK : side->count;
        if (block_is_finite(side, begin, end)) {
            continue;
        }
        for (int64_t k = begin; k < end; k++) {
            if (!block_is_finite(side, k, k + 1)) {
                return k;
            }
        }
    }
    return -1;
}

void lr_side_copy(const struct lr_side *from, const struct lr_side *to)
{
    if (from->is_double == to->is_double) {
        const size_t size = from->is_double ? sizeof(double) : sizeof(float);
        memcpy(to->values, from->values, (size_t)from->count * size);
    } else if (from->is_double) {
        const double *in = from->values;
        float *out = to->values;
        for (int64_t k = 0; k < from->count; k++) {
            out[k] = (float)in[k];
        }
    } else {
        const float *in = from->values;
        double *out = to->values;
        for (int64_t k = 0; k < from->count; k++) {
            out[k] = in[k];
        }
    }
}

lr_status lr_side_alloc(struct lr_side *side, const lr_log *log)
{
    const size_t size = side->is_double ? sizeof(double) : sizeof(float);
    side->values = lr_alloc(side->count, size, side->name, log);
    return side->values == NULL ? LR_FAILED : LR_OK;
}
