/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Arrays of doubles that the tests of list mode allocate. */
#ifndef LR_TEST_LISTMODE_NUMBERS_H
#define LR_TEST_LISTMODE_NUMBERS_H

#include "test.h"

#include <math.h>

static inline double *case_doubles(int64_t count)
{
    double *values = calloc((size_t)count, sizeof(*values));
    assert_non_null(values);
    return values;
}

/* Random floats, so that both precisions hold them. */
static inline double *case_random(int64_t count, uint64_t *seed)
{
    double *values = case_doubles(count);
    for (int64_t k = 0; k < count; k++) values[k] = (double)(float)test_random(seed);
    return values;
}

static inline double *case_ones(int64_t count)
{
    double *values = case_doubles(count);
    for (int64_t k = 0; k < count; k++) values[k] = 1.0;
    return values;
}

static inline double case_dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t k = 0; k < count; k++) sum += a[k] * b[k];
    return sum;
}

/* Relative to b. */
static inline double case_difference(const double *a, const double *b, int64_t count)
{
    double square = 0;
    for (int64_t k = 0; k < count; k++) square += (a[k] - b[k]) * (a[k] - b[k]);
    const double norm = case_dot(b, b, count);
    assert_true(norm > 0);
    return sqrt(square / norm);
}

#endif
