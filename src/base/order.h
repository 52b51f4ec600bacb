/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Order of numbers: comparisons for qsort() and bsearch(), and searches of ascending lists. */
#ifndef LR_BASE_ORDER_H
#define LR_BASE_ORDER_H

#include <stdint.h>

/* -1 = a is below b, 0 = neither, 1 = a is above b. */
static inline int lr_order(double a, double b)
{
    return (a > b) - (a < b);
}

static inline int lr_order_whole(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Order by a second key of items that are alike in the first. */
static inline int lr_order_then(int first, int second)
{
    return first != 0 ? first : second;
}

/* Order of lists, by the first numbers in which they differ. */
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

static inline int lr_compare_int64s(const void *a, const void *b)
{
    return lr_order_whole(*(const int64_t *)a, *(const int64_t *)b);
}

static inline int lr_compare_doubles(const void *a, const void *b)
{
    return lr_order(*(const double *)a, *(const double *)b);
}

/* Each finds the first of `count` ascending numbers that is at least `number`; count if there is none. */
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

#endif
