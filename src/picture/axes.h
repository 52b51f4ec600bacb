/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Ticks at round values for axes and colour bars; axes with ticks and names around a drawing. */
#pragma once

#include "base/order.h"
#include <lr/picture.h>

struct lr_ticks {
    double first, step; /* step is 1, 2 or 5 times a power of ten, negative if the axis runs backwards; 0 for a single
                           tick */
    int count;          /* at least 1; 0 for an axis that has no ticks */
    int power;          /* labels are values divided by 10^power; 0 = the values themselves are short enough */
    int decimals;       /* decimals of the labels */
};

/* Chooses ticks from low to high: at most `most`, but at least two. If the range is empty or not finite, there is one
 * tick, at `low`. */
struct lr_ticks lr_ticks_choose(double low, double high, int most);

/* A copy of the ticks with power = 0. Their labels need no power of ten. */
struct lr_ticks lr_ticks_unscaled(const struct lr_ticks *ticks);

double lr_tick_value(const struct lr_ticks *ticks, int n);

struct lr_tick_label {
    char text[64];
};
struct lr_tick_label lr_tick_label(const struct lr_ticks *ticks, int n);

/* A text with the labels' power of ten and unit, such as "10⁻⁵ %"; "" if the power is 0 and there is no unit (NULL or
 * ""). */
struct lr_tick_unit {
    char text[128];
};
struct lr_tick_unit lr_tick_unit(const struct lr_ticks *ticks, const char *unit);

/* One axis of a drawing. */
struct lr_axis {
    double low, high; /* values at the left and right edge, or at the lower and upper edge; the axis runs backwards if
                         low > high */
    const char *name; /* name with its unit: "x (mm)"; NULL = none */
    bool counts;      /* true if ticks must be whole numbers, for example of crystals */
};

/* The axis along x, y or z in mm, between the outer edges of the first and the last voxel. */
struct lr_axis lr_grid_axis(const lr_grid *grid, int axis);

/* The axis along u (0) or v (1) of a module's face, in mm from its centre. */
struct lr_axis lr_face_axis(const lr_module *module, int axis);

struct lr_axes {
    int corner[2], size[2]; /* the area within the axes and their frame */
    struct lr_axis across, up;
    lr_colour ink;
    int text_px; /* size of the letters; 0 = 12 */
    bool no_ticks_across;
};

/* Margins on each side of the area within the axes, in pixels, for ticks, labels and names. */
struct lr_margins {
    int left, top, right, bottom;
};
struct lr_margins lr_axes_margins(const struct lr_axes *axes);

void lr_axes_draw(lr_picture *picture, const struct lr_axes *axes);

/* The column of pixels for a value of `across`, and the row of pixels for a value of `up`. */
int lr_axes_x(const struct lr_axes *axes, double value);
int lr_axes_y(const struct lr_axes *axes, double value);
