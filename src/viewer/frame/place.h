/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Where a box of text stands so that it does not hide what it tells of. */
#ifndef LR_VIEWER_PLACE_H
#define LR_VIEWER_PLACE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Pixels from the screen's upper left. */
struct place_box {
    double from[2], to[2];
};

/* Puts a box of that size beside `kept`, to its right, left, below it or above it, with a gap
 * between, and sets `at` to its upper left corner. Returns whether all of the box is on the screen;
 * where it is not, the box stands on the side with the most room and the screen's edge cuts it. It
 * never covers a part of `kept`. */
bool place_beside(const struct place_box *kept, const double size[2], const double screen[2], double at[2]);

#ifdef __cplusplus
}
#endif

#endif
