/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Correspondence images as the verbs render and demo take them. */
#ifndef LR_CLI_SHOT_H
#define LR_CLI_SHOT_H

#include "common.h"

#include <lr/picture.h>

/* What draws where --backend says auto: the projector's own shaders, or the reference where those
 * cannot run. */
extern const char shot_backends[];

/* What drew, as it stands on the pictures: "drawn by backend raster on llvmpipe (LLVM 15.0.6, 256
 * bits), R = 4", or, where another backend was passed over, also why. */
struct shot_note {
    char text[2400];
};
void shot_note_init(struct shot_note *note, const lr_operator_info *info);

/* Says so: a warning where a backend was passed over. */
void shot_note_say(const struct shot_note *note, const lr_operator_info *info, struct report *report);

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
lr_picture *shot_draw(const struct setup *setup, const struct shot *shot, lr_correspondence_view view, double high);

/* The module whose image carries the greatest weight. */
lr_status shot_take_brightest(struct setup *setup, const double point_mm[3], struct shot *shot);

#endif
