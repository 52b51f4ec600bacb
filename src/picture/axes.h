/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Ticks at round values, for axes and colour bars; axes with ticks and names around a drawing. */
#ifndef LR_PICTURE_AXES_H
#define LR_PICTURE_AXES_H

#include <lr/picture.h>

struct lr_ticks {
    double first, step; /* step is 1, 2 or 5 times a power of ten; 0 with a single tick */
    int count;          /* at least 1 */
    int power;          /* labels are values over 10^power; 0 if they are short without it */
    int decimals;       /* decimals of the labels */
};

/* Ticks from low to high: two at least, and no more than `most` if that leaves two. A range that
 * is empty or not finite has one tick, at `low`. */
struct lr_ticks lr_ticks_choose(double low, double high, int most);

/* The same ticks with labels that are whole values, for places without a power of ten. */
struct lr_ticks lr_ticks_unscaled(const struct lr_ticks *ticks);

double lr_tick_value(const struct lr_ticks *ticks, int n);

struct lr_tick_label {
    char text[64];
};
struct lr_tick_label lr_tick_label(const struct lr_ticks *ticks, int n);

/* The unit of the labels: the unit (NULL or "": none) with its power of ten, as "10^-5 %" with the power raised; "" for
 * neither. */
struct lr_tick_unit {
    char text[128];
};
struct lr_tick_unit lr_tick_unit(const struct lr_ticks *ticks, const char *unit);

/* An axis. Zero `name`: no text next to the ticks. */
struct lr_axis {
    double low, high; /* at the left or lower edge, and at the other */
    const char *name; /* name with its unit: "x (mm)" */
    bool counts;      /* ticks at whole numbers only, for example crystals */
};

struct lr_axes {
    int corner[2], size[2]; /* the area within the axes and their frame */
    struct lr_axis across, up;
    lr_colour ink;
    int text_px; /* size of the letters; 0 = 12 */
};

static inline int lr_larger(int a, int b)
{
    return a > b ? a : b;
}

/* Pixels that ticks, labels and names take on each side of the area. */
struct lr_margins {
    int left, top, right, bottom;
};
struct lr_margins lr_axes_margins(const struct lr_axes *axes);

void lr_axes_draw(lr_picture *picture, const struct lr_axes *axes);

/* Pixel column of a value of `across`, and row of one of `up`. */
int lr_axes_x(const struct lr_axes *axes, double value);
int lr_axes_y(const struct lr_axes *axes, double value);

#endif
