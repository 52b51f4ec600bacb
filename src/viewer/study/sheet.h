/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Windows of primary modules as a picture: one, or all of them side by side. */
#ifndef LR_VIEWER_SHEET_H
#define LR_VIEWER_SHEET_H

#include "gl/resource.h"
#include "viewer/study/voxel.h"

enum sheet_kind {
    SHEET_CRYSTALS = 0, /* the paper's false colours */
    SHEET_WEIGHTS,
    SHEET_SAMPLED,
    SHEET_EXACT,
    SHEET_DIFFERENCE,
    SHEET_NUM_KINDS
};
extern const char *const sheet_names[SHEET_NUM_KINDS];

struct sheet {
    struct gl_texture *texture; /* RGBA8, row 0 at the bottom: v upwards */
    int size[2];                /* texels */
    int tile[2], columns;       /* windows side by side, the first at the upper left */
    int num_windows;
    double high; /* at the end of the colours; of differences, of either sign */
};

/* Draws it anew. Zero is an empty sheet; its owner destroys the texture. */
lr_status sheet_draw(struct sheet *sheet, struct gl_context *ctx, const struct voxel_result *result,
                     const lr_scanner *scanner, enum sheet_kind kind);

/* The window and pixel at a place, 0 .. 1 from the left and the top; false: there is none. */
bool sheet_pixel(const struct sheet *sheet, const double at[2], int *window, int place[2]);

/* The place, as above, of a window's pixel corner. */
void sheet_corners(const struct sheet *sheet, int window, const double place[2], double at[2]);

#endif
