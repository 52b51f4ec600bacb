/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/values.h"

#include "base/log.h"

static int64_t bytes_of(const lr_vector *values)
{
    return values->count * (int64_t)sizeof(float);
}

void lr_values_count_traffic(lr_place *place, const lr_vector *in, const lr_vector *out)
{
    if (in != NULL && in->values != NULL) place->traffic.to_device += bytes_of(in);
    if (out->values != NULL) place->traffic.to_host += bytes_of(out);
}

lr_status lr_values_put(const lr_vector *values, struct gl_buffer *buffer, int64_t offset)
{
    if (values->values != NULL) return gl_buffer_upload(buffer, offset, bytes_of(values), values->values);
    const struct lr_vector_range range = lr_vector_gl_range(values);
    gl_buffer_copy_range(&(struct gl_buffer_range){
        .from = range.buffer, .to = buffer, .from_offset = range.offset, .to_offset = offset, .bytes = range.bytes});
    return LR_OK;
}

lr_status lr_values_get(const struct gl_buffer *buffer, int64_t offset, lr_vector *values)
{
    if (values->values != NULL) return gl_buffer_read(buffer, offset, bytes_of(values), values->values);
    const struct lr_vector_range range = lr_vector_gl_range(values);
    gl_buffer_copy_range(&(struct gl_buffer_range){
        .from = buffer, .to = range.buffer, .from_offset = offset, .to_offset = range.offset, .bytes = range.bytes});
    return gl_context_check(buffer->ctx, "LOR values on the device");
}

struct gl_buffer *lr_values_buffer(struct gl_context *ctx, const char *label, int64_t count, const lr_vector *values)
{
    struct gl_buffer *buffer =
        gl_buffer_create(ctx, &(struct gl_buffer_params){.label = label,
                                                         .size_bytes = count * (int64_t)sizeof(float),
                                                         .data = values != NULL ? values->values : NULL,
                                                         .is_undefined = values != NULL && values->count == count});
    if (buffer != NULL && values != NULL && values->values == NULL && lr_values_put(values, buffer, 0) != LR_OK) {
        gl_buffer_destroy(buffer);
        return NULL;
    }
    return buffer;
}
