/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sorting by whole numbers in one thread. A sort of tens of millions of items by comparisons takes many times as
 * long. */
#ifndef LR_BASE_RADIX_H
#define LR_BASE_RADIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Sorts items that begin with a number from 0 to end - 1. Items of one number keep their order. spare: as much memory.
 * True if the sorted items are in `spare`. */
static inline bool lr_radix_sort(void *items, void *spare, size_t size, int64_t count, int64_t end)
{
    enum { DIGIT_BITS = 11, NUM_DIGITS = 1 << DIGIT_BITS };
    char *from = items, *to = spare;
    for (int shift = 0; shift < 63 && (end - 1) >> shift > 0; shift += DIGIT_BITS) {
        /* From the least significant digit on: counts the items of each digit, then moves them to their places. */
        int64_t places[NUM_DIGITS] = {0}, sum = 0;
        for (int64_t k = 0; k < count; k++)
            places[*(const int64_t *)(const void *)(from + (size_t)k * size) >> shift & (NUM_DIGITS - 1)]++;
        for (int digit = 0; digit < NUM_DIGITS; digit++) {
            const int64_t here = places[digit];
            places[digit] = sum;
            sum += here;
        }
        for (int64_t k = 0; k < count; k++) {
            const char *item = from + (size_t)k * size;
            const int64_t digit = *(const int64_t *)(const void *)item >> shift & (NUM_DIGITS - 1);
            memcpy(to + (size_t)places[digit]++ * size, item, size);
        }
        char *const sorted = to;
        to = from;
        from = sorted;
    }
    return from == spare;
}

#endif
