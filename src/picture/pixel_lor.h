/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LORs of the pixels of a correspondence image. The image has two indices, the row four (p, q, r, s): on the face of a
 * crystal, the lines of different LORs are next to each other. */
#ifndef LR_PICTURE_PIXEL_LOR_H
#define LR_PICTURE_PIXEL_LOR_H

#include <lr/operator.h>

/* The correspondence image of one point with one primary module. */
struct lr_pixel_window {
    const lr_lors *lors;
    int module;             /* the primary module */
    int rays;               /* R */
    const lr_pixel *pixels; /* [rays * nv][rays * nu], as lr_operator_picture fills them */
};

/* LOR of the pixel's line; -1 if it hits no crystal, or one out of coincidence. */
int64_t lr_pixel_lor(const struct lr_pixel_window *window, int x, int y);

/* Probability of a LOR in a row; 0 if the row does not have it. */
double lr_row_element(const lr_row *row, int64_t lor);

#endif
