/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/values.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

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

struct gl_buffer *lr_data_buffer(struct gl_context *ctx, const char *label, int64_t bytes, const void *data)
{
    return gl_buffer_create(ctx, &(struct gl_buffer_params){.label = label, .size_bytes = bytes, .data = data});
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

/* --- sums in fixed point --- */

/* The overflow flag and an unused word. */
enum { HEAD_BYTES = 8 };

/* Bits of 1 on the device. */
enum { BITS = 61 };

/* Factor by which the largest element may exceed its estimate; larger elements are noticed as overflows. */
static const double guess_margin = 16.0;

/* Sums that one read copies. */
enum { PIECE = 1 << 16 };

lr_status lr_fixed_init(struct lr_fixed *fixed, struct gl_context *ctx, int64_t count, int exponent)
{
    *fixed = (struct lr_fixed){.count = count, .exponent = exponent, .unit = ldexp(1.0, exponent - BITS)};
    fixed->buffer = lr_data_buffer(ctx, "sums in fixed point", HEAD_BYTES + count * LR_FIXED_BYTES, NULL);
    return fixed->buffer != NULL ? LR_OK : LR_FAILED;
}

void lr_fixed_finish(struct lr_fixed *fixed)
{
    gl_buffer_destroy(fixed->buffer);
    fixed->buffer = NULL;
}

lr_status lr_fixed_overflowed(const struct lr_fixed *fixed, bool *overflowed)
{
    uint32_t flag = 0;
    LR_TRY(gl_buffer_read(fixed->buffer, 0, sizeof(flag), &flag));
    *overflowed = flag != 0;
    return LR_OK;
}

lr_status lr_fixed_read(const struct lr_fixed *fixed, float *values)
{
    uint32_t(*words)[2] = lr_alloc(PIECE, sizeof(*words), "sums in fixed point", gl_context_log(fixed->buffer->ctx));
    lr_status status = words != NULL ? LR_OK : LR_FAILED;
    for (int64_t begin = 0; status == LR_OK && begin < fixed->count; begin += PIECE) {
        const int64_t here = fixed->count - begin < PIECE ? fixed->count - begin : PIECE;
        status = gl_buffer_read(fixed->buffer, HEAD_BYTES + begin * LR_FIXED_BYTES, here * LR_FIXED_BYTES, words);
        for (int64_t k = 0; status == LR_OK && k < here; k++) {
            const double high = words[k][1] < 0x80000000u ? words[k][1] : words[k][1] - 0x1.0p32;
            values[begin + k] = (float)ldexp(high * 0x1.0p32 + words[k][0], fixed->exponent - BITS);
        }
    }
    free(words);
    return status;
}

int lr_fixed_exponent(const float *values, int64_t count)
{
    float largest = 0.0f;
    int exponent = 0;
    for (int64_t k = 0; k < count; k++) largest = fabsf(values[k]) > largest ? fabsf(values[k]) : largest;
    frexpf(largest, &exponent);
    return exponent;
}

int64_t lr_fixed_most(int64_t floats)
{
    const int64_t most = (floats * (int64_t)sizeof(float) - HEAD_BYTES) / LR_FIXED_BYTES;
    return most > 0 ? most : 1;
}

int lr_fixed_sum_exponent(const struct lr_backend_params *params, const float *image)
{
    const int64_t num_voxels = lr_grid_num_voxels(params->grid);
    const lr_scanner *scanner = params->scanner;
    const lr_lors *lors = params->lors;
    double face = 0.0, nearest = INFINITY; /* area of the largest face; distance of the two nearest modules */
    for (int m = 0; m < scanner->num_modules; m++)
        face = fmax(face, scanner->modules[m].face_mm[0] * scanner->modules[m].face_mm[1]);
    for (int64_t k = 0; k < lors->num_pairs; k++) {
        double offset[3];
        vec_sub(lors->scanner->modules[lors->pairs[k][0]].centre_mm,
                lors->scanner->modules[lors->pairs[k][1]].centre_mm, offset);
        nearest = fmin(nearest, vec_length(offset));
    }
    const double half_way = 0.5 * nearest, part = face / (6.283185307179586 * half_way * half_way);

    double sum = 0.0;
    int exponent = 0;
    for (int64_t k = 0; k < num_voxels; k++) sum += fabs((double)image[k]);
    frexp(sum * fmin(1.0, guess_margin * part), &exponent);
    return exponent;
}
