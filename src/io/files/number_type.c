/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/number_type.h"

#include <float.h>
#include <math.h>
#include <string.h>

bool lr_number_type_is_valid(const struct lr_number_type *type)
{
    const int bytes = type->bytes;
    switch (type->kind) {
    case LR_KIND_SIGNED:
    case LR_KIND_UNSIGNED: return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    case LR_KIND_FLOAT: return bytes == 4 || bytes == 8;
    default: return false;
    }
}

/* Returns the bits of one number, without sign extension. */
static uint64_t bits_of(const struct lr_number_type *type, const unsigned char *raw)
{
    uint64_t bits = 0;
    for (int b = 0; b < type->bytes; b++) bits = bits << 8 | raw[type->big_endian ? b : type->bytes - 1 - b];
    return bits;
}

static double float_of(uint64_t bits, int bytes)
{
    if (bytes == 4) {
        const uint32_t low = (uint32_t)bits;
        float single;
        memcpy(&single, &low, sizeof(single));
        return (double)single;
    }
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

void lr_numbers_convert(const struct lr_number_type *type, const unsigned char *raw, int64_t count, double *numbers)
{
    const uint64_t sign = type->kind == LR_KIND_SIGNED ? UINT64_C(1) << (8 * type->bytes - 1) : 0;
    for (int64_t k = 0; k < count; k++) {
        const uint64_t bits = bits_of(type, raw + k * type->bytes);
        if (type->kind == LR_KIND_FLOAT)
            numbers[k] = float_of(bits, type->bytes);
        else if ((bits & sign) != 0)
            numbers[k] = -(double)((sign << 1) - bits);
        else
            numbers[k] = (double)bits;
    }
}

void lr_byte_order_watch(struct lr_byte_order *order, const struct lr_number_type *type, const unsigned char *raw,
                         const double *numbers, int64_t count)
{
    const struct lr_number_type other = {type->kind, type->bytes, !type->big_endian};
    const double least = type->bytes == 4 ? (double)FLT_MIN : DBL_MIN;
    for (int64_t k = 0; type->kind == LR_KIND_FLOAT && k < count; k++) {
        order->values += numbers[k] != 0.0;
        if (numbers[k] != 0.0 && !(fabs(numbers[k]) >= least && isfinite(numbers[k]))) {
            const double value = fabs(float_of(bits_of(&other, raw + k * type->bytes), type->bytes));
            order->swapped += value > 1e-30 && value < 1e30;
        }
    }
}

bool lr_byte_order_is_wrong(const struct lr_byte_order *order)
{
    return 2 * order->swapped > order->values;
}
