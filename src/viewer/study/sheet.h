/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Windows of primary modules as one picture: a single window, or all of them in a grid. */
#ifndef LR_VIEWER_SHEET_H
#define LR_VIEWER_SHEET_H

#include "gl/resource.h"
#include "viewer/study/voxel.h"

enum sheet_kind {
    SHEET_CRYSTALS = 0, /* false colours as in the paper */
    SHEET_WEIGHTS,
    SHEET_SAMPLED,
    SHEET_EXACT,
    SHEET_DIFFERENCE,
    SHEET_NUM_KINDS
};
extern const char *const sheet_names[SHEET_NUM_KINDS];

struct sheet {
    struct gl_texture *texture; /* RGBA8, row 0 at the bottom, so that v points up */
    int size[2];                /* texels */
    int tile[2], columns;       /* size of a window; the windows form a grid that begins at the upper left */
    int num_windows;
    double high; /* value at the end of the colour map; for differences, the value of both signs */
};

/* Draws the sheet again. Zero is an empty sheet; its owner destroys the texture. */
lr_status sheet_draw(struct sheet *sheet, struct gl_context *ctx, const struct voxel_result *result,
                     const lr_scanner *scanner, enum sheet_kind kind);

/* Finds the window and the pixel at a point of the sheet, 0 .. 1 from its left and top. Returns false if there is
 * none. */
bool sheet_pixel(const struct sheet *sheet, const double at[2], int *window, int place[2]);

/* Finds the point on the sheet, in the same coordinates, of a pixel corner in a window. */
void sheet_corners(const struct sheet *sheet, int window, const double place[2], double at[2]);

#endif
