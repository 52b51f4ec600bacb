/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Numbers in files, of any kind and byte order. */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum lr_number_kind { LR_KIND_NONE = 0, LR_KIND_SIGNED, LR_KIND_UNSIGNED, LR_KIND_FLOAT };

struct lr_number_type {
    enum lr_number_kind kind;
    int bytes; /* 1, 2, 4 or 8; 4 or 8 for LR_KIND_FLOAT */
    bool big_endian;
};

/* True if a number of type->kind can have type->bytes bytes. */
bool lr_number_type_is_valid(const struct lr_number_type *type);

/* Converts `count` numbers of a file to double. raw: [count * type->bytes]. */
void lr_numbers_convert(const struct lr_number_type *type, const unsigned char *raw, int64_t count, double *numbers);

/* Counts floats that fit only the other byte order. The value of such a float is too odd for a measurement, but its
 * bytes in reverse order are a usual number. Both counts begin at zero. */
struct lr_byte_order {
    int64_t values, swapped; /* values: floats other than 0; swapped: floats that fit only the other byte order */
};
void lr_byte_order_watch(struct lr_byte_order *order, const struct lr_number_type *type, const unsigned char *raw,
                         const double *numbers, int64_t count);

/* True if more than half of the floats fit only the other byte order. The byte order in the header is then wrong. */
bool lr_byte_order_is_wrong(const struct lr_byte_order *order);

/* End of the message about a file in the other byte order. */
#define LR_OTHER_BYTE_ORDER                                                                                            \
    "its numbers make sense in the other byte order only: correct the byte order in its header (MetaImage: "           \
    "BinaryDataByteOrderMSB, Interfile: imagedata byte order)"

/* --- single numbers in little-endian order --- */

static inline uint32_t lr_word_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline float lr_float_at(const unsigned char *bytes)
{
    const uint32_t word = lr_word_at(bytes);
    float value;
    memcpy(&value, &word, sizeof(value));
    return value;
}

/* A whole number of `count` bytes, at most 8. */
static inline uint64_t lr_whole_at(const unsigned char *bytes, int count)
{
    uint64_t number = 0;
    for (int k = count - 1; k >= 0; k--) number = number << 8 | bytes[k];
    return number;
}

/* Writes the lowest `count` bytes of a number. Returns the address after them. */
static inline unsigned char *lr_put_whole(unsigned char *bytes, uint64_t number, int count)
{
    for (int k = 0; k < count; k++) bytes[k] = (unsigned char)(number >> 8 * k);
    return bytes + count;
}

static inline unsigned char *lr_put_float(unsigned char *bytes, float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof(word));
    return lr_put_whole(bytes, word, 4);
}

/* --- the C locale: numbers in texts have a decimal point, also if the program's locale has a comma --- */

/* Saves the calling thread's locale. */
struct lr_c_locale {
    locale_t own, before;
};

/* Makes strtod and printf of this thread use the C locale until lr_c_locale_leave. If memory runs out, the thread keeps
 * its locale. */
static inline struct lr_c_locale lr_c_locale_enter(void)
{
    struct lr_c_locale locale = {newlocale(LC_ALL_MASK, "C", (locale_t)0), (locale_t)0};
    if (locale.own != (locale_t)0) locale.before = uselocale(locale.own);
    return locale;
}

static inline void lr_c_locale_leave(struct lr_c_locale locale)
{
    if (locale.own != (locale_t)0) {
        uselocale(locale.before);
        freelocale(locale.own);
    }
}
