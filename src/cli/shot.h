/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Correspondence images as the verbs render and demo take them. */
#ifndef LR_CLI_SHOT_H
#define LR_CLI_SHOT_H

#include "common.h"

#include <lr/picture.h>

/* The image of one point with one primary module; zero is an empty one. */
struct shot {
    int module;
    int size[2];      /* width R nu, height R nv */
    lr_pixel *pixels; /* owned [height][width] */
    int64_t num_hits; /* pixels with a secondary module */
    double weight;    /* sum of the pixels' */
    double highest;   /* the largest weight */
};

/* Takes it. errors: reported; the shot is empty then. */
lr_status shot_take(struct setup *setup, const double point_mm[3], int module, struct shot *shot);
void shot_finish(struct shot *shot);

/* Draws it; `high` is the weight at the end of the colour map. NULL,
 * reported, on failure. */
lr_picture *shot_draw(const struct setup *setup, const struct shot *shot,
                      lr_correspondence_view view, double high);

/* The module whose image carries the greatest weight. */
lr_status shot_take_brightest(struct setup *setup, const double point_mm[3], struct shot *shot);

#endif
