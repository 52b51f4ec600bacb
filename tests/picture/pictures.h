/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Pictures that are destroyed when a test ends, and what is on them. */
#pragma once

#include "cases.h"

static const lr_colour black = {0, 0, 0}, white = {255, 255, 255};

static inline void destroy_picture(void *picture)
{
    lr_picture_destroy(picture);
}

static inline lr_picture *keep_picture(lr_picture *picture)
{
    return keep_object(picture, destroy_picture);
}

/* Black, and kept. */
static inline lr_picture *make(int width, int height)
{
    return keep_picture(lr_picture_create((int[2]){width, height}, NULL));
}

static inline lr_picture *make_white(int width, int height)
{
    lr_picture *picture = make(width, height);
    lr_picture_fill(picture, (int[2]){0, 0}, picture->size, white);
    return picture;
}

static inline bool is_colour(const lr_picture *picture, int x, int y, lr_colour colour)
{
    const uint8_t *rgb = picture->rgb + 3 * (y * picture->size[0] + x);
    return rgb[0] == colour.r && rgb[1] == colour.g && rgb[2] == colour.b;
}

static inline int count_pixels(const lr_picture *picture, lr_colour colour)
{
    int count = 0;
    for (int n = 0; n < picture->size[0] * picture->size[1]; n++)
        count += is_colour(picture, n % picture->size[0], n / picture->size[0], colour);
    return count;
}
