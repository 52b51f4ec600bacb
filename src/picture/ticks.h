/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Round values on an axis or a colour bar. */
#ifndef LR_PICTURE_TICKS_H
#define LR_PICTURE_TICKS_H

struct lr_ticks {
    double first, step; /* step is 1, 2 or 5 times a power of ten; 0 with a single tick */
    int count;          /* at least 1 */
    int power;          /* labels are values over 10^power, 0 where they are short without */
    int decimals;       /* of the labels */
};

/* Ticks from low to high: two at least, and no more than `most` where that leaves two. A range that
 * is empty or not finite has one, at `low`. */
struct lr_ticks lr_ticks_choose(double low, double high, int most);

/* The same ticks with labels that are whole values, where a power of ten has no place. */
struct lr_ticks lr_ticks_unscaled(const struct lr_ticks *ticks);

double lr_tick_value(const struct lr_ticks *ticks, int n);

struct lr_tick_label {
    char text[64];
};
struct lr_tick_label lr_tick_label(const struct lr_ticks *ticks, int n);

/* What the labels are in: the unit (NULL or "": none) with its power of ten, as "10^-5 %" with the
 * power raised; "" where neither is there. */
struct lr_tick_unit {
    char text[128];
};
struct lr_tick_unit lr_tick_unit(const struct lr_ticks *ticks, const char *unit);

#endif
