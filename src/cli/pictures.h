/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Pictures of one sheet, and the bitmaps of single points with one module. */
#ifndef LR_CLI_PICTURES_H
#define LR_CLI_PICTURES_H

#include "common.h"

#include <lr/picture.h>

/* Zero is an empty sheet. It owns its pictures. */
struct picture_sheet {
    struct report *report;
    lr_tile *tiles;   /* owned [num_tiles], with pictures and captions */
    const char *note; /* a line on every PNG of it, such as what made them; NULL = none */
    int num_tiles;
    int64_t room;
};

/* Takes over the picture; NULL is passed through as the error of the function that made it. The caption is
 * formatted. */
lr_status picture_sheet_add(struct picture_sheet *sheet, lr_picture *picture, const char *format, ...) LR_PRINTF(3, 4);

/* Writes the last picture added as a PNG of its own, with its caption and the note. */
lr_status picture_sheet_write_last(const struct picture_sheet *sheet, const char *path);

/* Writes all of them as one PNG. title may be NULL. */
lr_status picture_sheet_write(const struct picture_sheet *sheet, const char *path, int columns, const char *title);
void picture_sheet_finish(struct picture_sheet *sheet);

/* One picture as PNG. */
lr_status picture_write(struct report *report, const char *path, const lr_picture *picture);

/* Backends that draw with --backend auto: the projector's own shaders, or the reference if those cannot run. */
extern const char bitmap_backends[];

/* The line on the pictures that says what drew them: "drawn by backend raster on llvmpipe (LLVM 15.0.6, 256
 * bits), R = 4"; if another backend was passed over, also the reason. */
struct bitmap_note {
    char text[2400];
};
void bitmap_note_init(struct bitmap_note *note, const lr_operator_info *info);

/* Reports the note; as a warning if a backend was passed over. */
void bitmap_note_say(const struct bitmap_note *note, const lr_operator_info *info, struct report *report);

/* The image of one point with one primary module; zero is an empty one. */
struct bitmap {
    int module;
    int size[2];      /* width R nu, height R nv */
    lr_pixel *pixels; /* owned [height][width] */
    int64_t num_hits; /* pixels with a secondary module */
    double weight;    /* sum of the pixels' */
    double highest;   /* the largest weight */
};

/* Makes the bitmap. errors: reported; it is empty then. */
lr_status bitmap_take(struct setup *setup, const double point_mm[3], int module, struct bitmap *bitmap);
void bitmap_finish(struct bitmap *bitmap);

/* Draws it; `high` is the weight at the end of the colour map. NULL,
 * reported, on failure. */
lr_picture *bitmap_draw(const struct setup *setup, const struct bitmap *bitmap, lr_correspondence_view view,
                        double high);

/* The module whose image carries the greatest weight. */
lr_status bitmap_take_brightest(struct setup *setup, const double point_mm[3], struct bitmap *bitmap);

#endif
