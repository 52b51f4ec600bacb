/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LOR values of a projection, on the host or at the backend's place, to and from buffers of passes.
 * Vectors are in float32; the context is current. */
#ifndef LR_RENDER_VALUES_H
#define LR_RENDER_VALUES_H

#include "gl/resource.h"
#include "vector/place.h"

/* A buffer of `count` values: those of the vector, or zeros where it is NULL. errors: NULL, logged. */
struct gl_buffer *lr_values_buffer(struct gl_context *ctx, const char *label, int64_t count, const lr_vector *values);

/* Vectors of a projection that are on the host pass between it and the place. in: NULL = none. */
void lr_values_count_traffic(lr_place *place, const lr_vector *in, const lr_vector *out);

/* A vector's values to and from where they stand in a buffer, in bytes. */
lr_status lr_values_put(const lr_vector *values, struct gl_buffer *buffer, int64_t offset);
lr_status lr_values_get(const struct gl_buffer *buffer, int64_t offset, lr_vector *values);

#endif
