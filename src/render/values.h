/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Buffers of passes, and LOR values of a projection, on the host or at the backend's place, to and from them.
 * Vectors are in float32; the context is current. */
#ifndef LR_RENDER_VALUES_H
#define LR_RENDER_VALUES_H

#include "gl/resource.h"
#include "operator/backend.h"
#include "vector/place.h"

/* A buffer of the data, or of zeros if it is NULL. errors: NULL, logged. */
struct gl_buffer *lr_data_buffer(struct gl_context *ctx, const char *label, int64_t bytes, const void *data);

/* A buffer of `count` values: those of the vector, or zeros if it is NULL. errors: NULL, logged. */
struct gl_buffer *lr_values_buffer(struct gl_context *ctx, const char *label, int64_t count, const lr_vector *values);

/* Counts the transfers of vectors on the host to and from the place. in: NULL = none. */
void lr_values_count_traffic(lr_place *place, const lr_vector *in, const lr_vector *out);

/* Copies a vector's values to and from a buffer. offset: bytes. */
lr_status lr_values_put(const lr_vector *values, struct gl_buffer *buffer, int64_t offset);
lr_status lr_values_get(const struct gl_buffer *buffer, int64_t offset, lr_vector *values);

/* --- sums in fixed point --- */

/* Sums on the device that do not depend on the order of their terms: shaders/common/fixed.glsl.
 * A term is exact to 2^-62 of a power of two above the largest value, and to a float's rounding. */

struct lr_fixed {
    struct gl_buffer *buffer;
    int64_t count;
    int exponent; /* exponent of the value of the integer 2^61 on the device */
    double unit;  /* the value of the integer 1 on the device */
    bool overflowed;
};

/* Bytes of a sum on the device; the rise of the exponent after an overflow. */
enum { LR_FIXED_BYTES = 8, LR_FIXED_STEP = 8 };

/* The number of sums in the memory of `floats` floats, at least 1. */
int64_t lr_fixed_most(int64_t floats);

/* Zero sums. errors: LR_FAILED; *fixed is then empty. */
lr_status lr_fixed_init(struct lr_fixed *fixed, struct gl_context *ctx, int64_t count, int exponent);
void lr_fixed_finish(struct lr_fixed *fixed);

/* True if a sum was too large. All sums must then be computed again with a larger exponent. */
lr_status lr_fixed_overflowed(const struct lr_fixed *fixed, bool *overflowed);

/* values: [count]. */
lr_status lr_fixed_read(const struct lr_fixed *fixed, float *values);

/* The smallest exponent whose power of two is above all finite values in size. */
int lr_fixed_exponent(const float *values, int64_t count);

/* An exponent for LOR values of an image: the sum of its voxels' absolute values times a generous estimate of the
 * largest element, for a crystal seen from half-way between the two nearest modules that have LORs. */
int lr_fixed_sum_exponent(const struct lr_backend_params *params, const float *image);

#endif
