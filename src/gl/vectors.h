/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Buffers of passes, and copies between buffers and vectors. Vectors are on the host or at an OpenGL place, in float32.
 * The context must be current. */
#pragma once

#include "device/place.h"
#include "gl/resource.h"

/* Creates a buffer of `count` values with a copy of the vector; NULL = zeros. errors: NULL, logged. */
struct gl_buffer *lr_values_buffer(struct gl_context *ctx, const char *label, int64_t count, const lr_vector *values);

/* Counts the transfers between host vectors and the place, as traffic of the place. in: NULL = there is no input. */
void lr_values_count_traffic(lr_place *place, const lr_vector *in, const lr_vector *out);

/* Copy a vector's values to a buffer, or from a buffer. offset: in the buffer, bytes. */
lr_status lr_values_put(const lr_vector *values, struct gl_buffer *buffer, int64_t offset);
lr_status lr_values_get(const struct gl_buffer *buffer, int64_t offset, lr_vector *values);
