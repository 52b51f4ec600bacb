/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Vectors of three doubles. */
#pragma once

#include <math.h>
#include <stdbool.h>

static inline double vec_dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static inline double vec_length(const double a[3])
{
    return sqrt(vec_dot(a, a));
}

static inline bool vec_is_finite(const double a[3])
{
    return isfinite(a[0]) && isfinite(a[1]) && isfinite(a[2]);
}

/* Divides a vector by its length. If the vector is zero, leaves the vector unchanged and returns false. */
static inline bool vec_normalise(double a[3])
{
    const double length = sqrt(vec_dot(a, a));
    for (int k = 0; k < 3 && length > 0; k++) a[k] /= length;
    return length > 0;
}

static inline void vec_cross(const double a[3], const double b[3], double out[3])
{
    const double x = a[1] * b[2] - a[2] * b[1];
    const double y = a[2] * b[0] - a[0] * b[2];
    const double z = a[0] * b[1] - a[1] * b[0];
    out[0] = x;
    out[1] = y;
    out[2] = z;
}

static inline void vec_sub(const double a[3], const double b[3], double out[3])
{
    for (int k = 0; k < 3; k++) out[k] = a[k] - b[k];
}

/* out = a + t b */
static inline void vec_add_scaled(const double a[3], double t, const double b[3], double out[3])
{
    for (int k = 0; k < 3; k++) out[k] = a[k] + t * b[k];
}
