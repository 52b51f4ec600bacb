/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Round numbers along an axis, and how they are written. */
#ifndef LR_VIEWER_TICKS_H
#define LR_VIEWER_TICKS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TICKS_MOST = 12, TICKS_TEXT = 32 };

struct ticks {
    int count; /* 0 where low .. high is no range of finite numbers */
    double values[TICKS_MOST];
    int digits; /* significant ones that tell neighbours apart */
};

/* Multiples of 1, 2 or 5 times a power of ten from low to high, both included, at most `most` of
 * them (3 .. TICKS_MOST), at least one. are_whole: steps of at least 1. */
struct ticks ticks_make(const double range[2], int most, bool are_whole);

/* "0.25", "2e-05", "-2447340" */
void ticks_write(const struct ticks *ticks, int k, char text[TICKS_TEXT]);

#ifdef __cplusplus
}
#endif

#endif
