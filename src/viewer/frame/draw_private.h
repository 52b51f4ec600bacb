/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_VIEWER_DRAW_PRIVATE_H
#define LR_VIEWER_DRAW_PRIVATE_H

#include "viewer/frame/draw.h"

enum { DRAW_NUM_MAPS = 4, DRAW_BIND_MODULES = 0, DRAW_BIND_COLOURS, DRAW_BIND_VALUES };

enum draw_program {
    DRAW_CRYSTALS = 0,
    DRAW_BOXES,
    DRAW_LINES,
    DRAW_SLICE,
    DRAW_FLAT_SLICE,
    DRAW_VOLUME,
    DRAW_NUM_PROGRAMS
};

struct draw {
    struct gl_context *ctx;
    struct gl_program *programs[DRAW_NUM_PROGRAMS];
    struct gl_texture *maps[DRAW_NUM_MAPS]; /* by lr_colour_map, 256 x 1 */
    struct gl_texture *nothing;             /* 1 x 1 x 1, in place of an image */
    int num_modules, num_crystals;
    double crystals_largest;
    struct gl_buffer *modules, *colours, *values;
    struct gl_texture *images[DRAW_NUM_IMAGES];
    bool is_lent[DRAW_NUM_IMAGES];
    lr_grid grids[DRAW_NUM_IMAGES];
    float highest[DRAW_NUM_IMAGES];
    struct draw_coming {
        struct gl_texture *texture; /* NULL = nothing comes */
        const lr_image *image;      /* the caller's */
        int num_slices;             /* that are there */
    } coming[DRAW_NUM_IMAGES];
    struct gl_buffer *lines[DRAW_NUM_LINES];
    int num_lines[DRAW_NUM_LINES];
};

#endif
