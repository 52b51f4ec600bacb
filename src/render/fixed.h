/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sums on the device that do not depend on the order of their terms: shaders/common/fixed.glsl.
 * A term is exact to 2^-62 of a power of two above the largest value, and to a float's rounding. */
#ifndef LR_RENDER_FIXED_H
#define LR_RENDER_FIXED_H

#include "gl/resource.h"
#include "operator/backend.h"

struct lr_fixed {
    struct gl_buffer *buffer;
    int64_t count;
    int exponent; /* a sum of 1 on the device stands for 2^exponent */
    bool overflowed;
};

/* Bytes of a sum on the device; what the exponent rises by after an overflow. */
enum { LR_FIXED_BYTES = 8, LR_FIXED_STEP = 8 };

/* Sums in place of that many floats, at least 1. */
int64_t lr_fixed_most(int64_t floats);

/* Zero sums. errors: LR_FAILED; *fixed is then empty. */
lr_status lr_fixed_init(struct lr_fixed *fixed, struct gl_context *ctx, int64_t count, int exponent);
void lr_fixed_finish(struct lr_fixed *fixed);

/* Whether a sum was too large, so that all are to be worked out anew with a larger exponent. */
lr_status lr_fixed_overflowed(const struct lr_fixed *fixed, bool *overflowed);

/* What a sum of 1 on the device stands for. */
double lr_fixed_unit(const struct lr_fixed *fixed);

/* values: [count]. */
lr_status lr_fixed_read(const struct lr_fixed *fixed, float *values);

/* The smallest exponent whose power of two is above all finite values in size. */
int lr_fixed_exponent(const float *values, int64_t count);

/* An exponent for LOR values of an image: the sum of its voxels' sizes times a generous guess at the
 * largest element, a crystal seen from half-way between the two nearest modules that have LORs. */
int lr_fixed_sum_exponent(const struct lr_backend_params *params, const float *image);

#endif
