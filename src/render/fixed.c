/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/fixed.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

/* The overflow flag and a word beside it. */
enum { HEAD_BYTES = 8 };

/* Of 1 on the device. */
enum { BITS = 61 };

/* How much larger than guessed the largest element may be; overflows are noticed beyond that. */
static const double guess_margin = 16.0;

/* Sums read at a time. */
enum { PIECE = 1 << 16 };

lr_status lr_fixed_init(struct lr_fixed *fixed, struct gl_context *ctx, int64_t count, int exponent)
{
    *fixed = (struct lr_fixed){.count = count, .exponent = exponent};
    fixed->buffer =
        gl_buffer_create(ctx, &(struct gl_buffer_params){.label = "sums in fixed point",
                                                         .size_bytes = HEAD_BYTES + count * LR_FIXED_BYTES});
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

static double to_double(const uint32_t words[2])
{
    const double high = words[1] < 0x80000000u ? words[1] : words[1] - 0x1.0p32;
    return high * 0x1.0p32 + words[0];
}

double lr_fixed_unit(const struct lr_fixed *fixed)
{
    return ldexp(1.0, fixed->exponent - BITS);
}

lr_status lr_fixed_read(const struct lr_fixed *fixed, float *values)
{
    uint32_t(*words)[2] = lr_alloc(PIECE, sizeof(*words), "sums in fixed point", gl_context_log(fixed->buffer->ctx));
    lr_status status = words != NULL ? LR_OK : LR_FAILED;
    for (int64_t begin = 0; status == LR_OK && begin < fixed->count; begin += PIECE) {
        const int64_t here = fixed->count - begin < PIECE ? fixed->count - begin : PIECE;
        status = gl_buffer_read(fixed->buffer, HEAD_BYTES + begin * LR_FIXED_BYTES, here * LR_FIXED_BYTES, words);
        for (int64_t k = 0; status == LR_OK && k < here; k++)
            values[begin + k] = (float)ldexp(to_double(words[k]), fixed->exponent - BITS);
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

static double largest_face(const lr_scanner *scanner)
{
    double largest = 0.0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const double *face = scanner->modules[m].face_mm;
        largest = fmax(largest, face[0] * face[1]);
    }
    return largest;
}

static double nearest_pair(const lr_lors *lors)
{
    double nearest = INFINITY;
    for (int64_t k = 0; k < lors->num_pairs; k++) {
        double way[3];
        vec_sub(lors->scanner->modules[lors->pairs[k][0]].centre_mm,
                lors->scanner->modules[lors->pairs[k][1]].centre_mm, way);
        nearest = fmin(nearest, vec_length(way));
    }
    return nearest;
}

int lr_fixed_sum_exponent(const struct lr_backend_params *params, const float *image)
{
    const int64_t num_voxels = lr_grid_num_voxels(params->grid);
    const double half_way = 0.5 * nearest_pair(params->lors);
    const double part = largest_face(params->scanner) / (6.283185307179586 * half_way * half_way);
    double sum = 0.0;
    int exponent = 0;
    for (int64_t k = 0; k < num_voxels; k++) sum += fabs((double)image[k]);
    frexp(sum * fmin(1.0, guess_margin * part), &exponent);
    return exponent;
}
