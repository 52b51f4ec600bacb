/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Axes with ticks and names around what is drawn in between. */
#ifndef LR_PICTURE_AXES_H
#define LR_PICTURE_AXES_H

#include <lr/picture.h>

/* Zero `name`: no text beside the ticks. */
struct lr_axis {
    double low, high; /* at the left or lower edge, and at the other */
    const char *name; /* with its unit: "x (mm)" */
    bool counts;      /* ticks at whole numbers only: of crystals and the like */
};

struct lr_axes {
    int corner[2], size[2]; /* what the axes enclose; the frame stands around it */
    struct lr_axis across, up;
    lr_colour ink;
    int text_px; /* size of the letters; 0 = 12 */
};

/* Pixels that ticks, labels and names take on each side of what they enclose. */
struct lr_margins {
    int left, top, right, bottom;
};
struct lr_margins lr_axes_margins(const struct lr_axes *axes);

void lr_axes_draw(lr_picture *picture, const struct lr_axes *axes);

/* Pixel column of a value of `across`, and row of one of `up`. */
int lr_axes_x(const struct lr_axes *axes, double value);
int lr_axes_y(const struct lr_axes *axes, double value);

#endif
