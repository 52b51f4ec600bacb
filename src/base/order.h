/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Order of numbers: the smaller and the larger one, comparisons for qsort() and bsearch(), searches of ascending lists, and a sort by whole numbers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Compares numbers: -1 = a is below b, 1 = a is above b, 0 = neither. */
static inline int lr_order(double a, double b)
{
    return (a > b) - (a < b);
}

static inline int lr_order_whole(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static inline int64_t lr_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t lr_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the result of the first comparison, or that of the second if the first is 0. */
static inline int lr_order_then(int first, int second)
{
    return first != 0 ? first : second;
}

/* Compares lists by the first numbers in which they differ. */
static inline int lr_order_lists(const double *a, const double *b, int count)
{
    int k = 0;
    while (k < count - 1 && a[k] == b[k]) k++;
    return lr_order(a[k], b[k]);
}

/* Comparisons of numbers, and of structs whose first member is the number. */
static inline int lr_compare_ints(const void *a, const void *b)
{
    return lr_order_whole(*(const int *)a, *(const int *)b);
}

static inline int lr_compare_uints(const void *a, const void *b)
{
    return lr_order_whole(*(const uint32_t *)a, *(const uint32_t *)b);
}

static inline int lr_compare_int64s(const void *a, const void *b)
{
    return lr_order_whole(*(const int64_t *)a, *(const int64_t *)b);
}

static inline int lr_compare_doubles(const void *a, const void *b)
{
    return lr_order(*(const double *)a, *(const double *)b);
}

/* Each function returns the index of the first of `count` ascending numbers that is at least `number`, or `count` if
 * there is none. */
#define LR_DEFINE_SEARCH(name, type, wanted)                                                                           \
    static inline int64_t name(const type *numbers, int64_t count, wanted number)                                      \
    {                                                                                                                  \
        int64_t low = 0, high = count;                                                                                 \
        while (low < high) {                                                                                           \
            const int64_t middle = low + (high - low) / 2;                                                             \
            if (numbers[middle] < number)                                                                              \
                low = middle + 1;                                                                                      \
            else                                                                                                       \
                high = middle;                                                                                         \
        }                                                                                                              \
        return low;                                                                                                    \
    }
LR_DEFINE_SEARCH(lr_first_at_least, int64_t, int64_t)
LR_DEFINE_SEARCH(lr_first_int_at_least, int32_t, int64_t)
LR_DEFINE_SEARCH(lr_first_uint_at_least, uint32_t, int64_t)
LR_DEFINE_SEARCH(lr_first_double_at_least, double, double)
#undef LR_DEFINE_SEARCH

/* Sorts items by the number with which each begins, in one thread. The numbers are from 0 to end - 1. Items with equal
 * numbers keep their order. spare: memory as large as the items. Returns true if the sorted items are in `spare`. For
 * tens of millions of items, a sort by comparisons takes many times as long. */
static inline bool lr_radix_sort(void *items, void *spare, size_t size, int64_t count, int64_t end)
{
    enum { DIGIT_BITS = 11, NUM_DIGITS = 1 << DIGIT_BITS };
    char *from = items, *to = spare;
    int64_t ascending = 1; /* number of items before the first item that is smaller than its predecessor */
    while (ascending < count && *(const int64_t *)(const void *)(from + (size_t)(ascending - 1) * size) <=
                                    *(const int64_t *)(const void *)(from + (size_t)ascending * size))
        ascending++;
    if (ascending >= count) return false;
    for (int shift = 0; shift < 63 && (end - 1) >> shift > 0; shift += DIGIT_BITS) {
        /* Each pass sorts by one digit, the least significant one first. It counts the items with each value of the
         * digit, then moves all items to their places. */
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
