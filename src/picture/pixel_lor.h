/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The LOR of a pixel in a correspondence image. A pixel stores the module and the crystal (r, s) that its line hits.
 * The position of the pixel in the image gives the crystal (p, q) of the primary module. */
#pragma once

#include <lr/picture.h>

/* The grey of pixels whose line joins no pair of crystals. Neither false colours nor colour maps have such a grey, and
 * the edges of letters have none either. */
static const lr_colour lr_pixel_none = {203, 206, 210};

/* The correspondence image of one point with one primary module. */
struct lr_pixel_window {
    const lr_lors *lors;
    int module;             /* the primary module */
    int rays;               /* R, the number of pixels per crystal and axis */
    const lr_pixel *pixels; /* [rays * nv][rays * nu] pixels from lr_operator_picture */
};

/* Returns the LOR of the pixel's line; -1 if the line hits no crystal, or a crystal that is not in coincidence. */
int64_t lr_pixel_lor(const struct lr_pixel_window *window, int x, int y);

/* Returns the probability of a LOR in a row; 0 if the row has no such element. */
double lr_row_element(const lr_row *row, int64_t lor);
