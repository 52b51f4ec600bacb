/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Pictures on one sheet, and the correspondence images of one point with one module. */
#pragma once

#include "common.h"

#include <lr/picture.h>

/* A sheet owns its pictures. A struct of zeros is an empty sheet. */
struct picture_sheet {
    struct report *report;
    lr_tile *tiles;   /* owned [num_tiles], with pictures and captions */
    const char *note; /* a line on every PNG of the sheet, such as the backend that drew it; NULL = none */
    int num_tiles;
    int64_t room;
};

/* Adds a picture, which the sheet owns from now on. picture: NULL if the function that makes the picture has failed;
 * the error of that function is then returned. format: the caption, as for printf. */
lr_status picture_sheet_add(struct picture_sheet *sheet, lr_picture *picture, const char *format, ...) LR_PRINTF(3, 4);

/* Writes the pictures from number `first` on as one PNG, with their captions and the note. title may be NULL. */
lr_status picture_sheet_write(const struct picture_sheet *sheet, const char *path, int first, int columns,
                              const char *title);
void picture_sheet_finish(struct picture_sheet *sheet);

/* Three slices of an image. */
struct picture_slices {
    const lr_image *image;
    const char *unit; /* unit of the voxels */
    const char *title, *note;
    lr_colour_map colours;
};

/* Draws slices through the mean position of the image's values; if their sum is 0, through the centre of the grid. */
lr_status picture_write_slices(struct report *report, const char *path, const struct picture_slices *slices);

/* The backends that draw with --backend auto: the projector's shaders or, without OpenGL, the reference. */
extern const char bitmap_backends[];

/* The line on a picture that names the backend, such as "drawn by backend raster on llvmpipe (LLVM 15.0.6, 256 bits), R
 * = 4". If another backend was passed over, the line also gives the reason. */
struct bitmap_note {
    char text[2400];
};

/* Makes the note and reports it, as a warning if a backend was passed over. */
void bitmap_note_make(struct bitmap_note *note, const lr_operator_info *info, struct report *report);

/* The correspondence image of one point with one primary module; a struct of zeros is an empty one. */
struct bitmap {
    int module;
    int size[2];      /* [0]: width R nu; [1]: height R nv */
    lr_pixel *pixels; /* owned [height][width] */
    int64_t num_hits; /* pixels that have a secondary module */
    double weight;    /* sum of all pixels' weights */
    double highest;   /* largest weight of a pixel */
};

/* Makes a bitmap. errors: reported; the bitmap is empty then. */
lr_status bitmap_take(struct setup *setup, const double point_mm[3], int module, struct bitmap *bitmap);
void bitmap_finish(struct bitmap *bitmap);

/* Draws the bitmap. `high` is the weight at the end of the colour map. Returns NULL on failure, reported. */
lr_picture *bitmap_draw(const struct setup *setup, const struct bitmap *bitmap, lr_correspondence_view view,
                        double high);

/* Makes the bitmap of the module whose image has the greatest total weight. */
lr_status bitmap_take_brightest(struct setup *setup, const double point_mm[3], struct bitmap *bitmap);
