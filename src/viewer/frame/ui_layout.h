/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Places of text beside what it describes, and round numbers along an axis. */
#ifndef LR_VIEWER_UI_LAYOUT_H
#define LR_VIEWER_UI_LAYOUT_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Pixels from the screen's upper left. */
struct place_box {
    double from[2], to[2];
};

/* Puts a box of that size beside `part`, to its right, left, below it or above it, with a gap
 * between, and sets `at` to its upper left corner. Returns whether all of the box is on the screen;
 * where it is not, the box stands on the side with the most room and the screen's edge cuts it. It
 * never covers any of `part`. */
bool place_beside(const struct place_box *part, const double size[2], const double screen[2], double at[2]);

enum { TICKS_MOST = 12, TICKS_TEXT = 32 };

struct ticks {
    int count; /* 0 where low .. high is no range of finite numbers */
    double values[TICKS_MOST];
    int digits; /* significant digits that distinguish neighbours */
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
