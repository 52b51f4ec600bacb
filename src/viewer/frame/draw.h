/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scene in three dimensions: modules and crystals, slices and volumes of images, lines. What is
 * shown is set once and drawn in every frame. */
#ifndef LR_VIEWER_DRAW_H
#define LR_VIEWER_DRAW_H

#include "gl/pass.h"
#include "viewer/frame/camera.h"

#include <lr/grid.h>
#include <lr/picture.h>
#include <lr/scanner.h>

struct draw;

struct draw *draw_create(struct gl_context *ctx);
void draw_destroy(struct draw *draw); /* NULL is allowed */

/* --- what is shown --- */

/* NULL: no scanner. */
lr_status draw_set_scanner(struct draw *draw, const lr_scanner *scanner);

/* A colour for each module, 0xRRGGBBAA; alpha is not used. [num_modules] */
lr_status draw_set_module_colours(struct draw *draw, const uint32_t *colours);

/* A value for each crystal, 0 .. 1 of the perceptual map, below 0: the module's colour. NULL: none.
 * [num_crystals] largest: what 1 stands for. */
lr_status draw_set_crystal_values(struct draw *draw, const float *values, double largest);

/* The value of 1, as set last; 0 while crystals have their module's colour. */
double draw_get_crystals_largest(const struct draw *draw);

/* Images that can be there at once. */
enum draw_image {
    DRAW_IMAGE = 0,
    DRAW_MU,
    DRAW_TUBE,
    DRAW_SENSITIVITY,
    DRAW_LIVE,
    DRAW_KERNEL,
    DRAW_HISTO,
    DRAW_NUM_IMAGES
};

/* Copies an image to the device; NULL: none. */
lr_status draw_set_image(struct draw *draw, enum draw_image which, const lr_image *image);

/* The same in pieces: begins to copy; draw_advance goes on with a piece, once a frame, until it
 * returns false. What was shown goes at once, the image comes when all of it is there. It lives until
 * then, or until another is set in its place. largest: its largest voxel. */
lr_status draw_begin_image(struct draw *draw, enum draw_image which, const lr_image *image, double largest);
bool draw_advance(struct draw *draw);
bool draw_is_busy(const struct draw *draw);

/* True if that image is there, or on its way to the device. */
bool draw_has_image(const struct draw *draw, enum draw_image which);

/* Shows a texture that somebody else owns, [z][y][x] on that grid, until it is set anew. highest: its
 * largest voxel. */
void draw_lend_image(struct draw *draw, enum draw_image which, struct gl_texture *texture, const lr_grid *grid,
                     double highest);

/* Texture of that image, [z][y][x]; NULL: none is there. Its grid, also while it comes. */
const struct gl_texture *draw_get_image(const struct draw *draw, enum draw_image which);
const lr_grid *draw_get_grid(const struct draw *draw, enum draw_image which);

/* The value that the slices show of a voxel of the image; waits for the device. NaN without that
 * image, and for a voxel that it does not have. */
double draw_get_voxel(const struct draw *draw, enum draw_image which, const int voxel[3]);

/* Lines in groups that come and go on their own. DRAW_LOR and DRAW_CURSOR are drawn over all. */
enum draw_lines { DRAW_GRID = 0, DRAW_AXES, DRAW_LORS, DRAW_LOR, DRAW_CURSOR, DRAW_NUM_LINES };

struct draw_line {
    float from[3], to[3];
    uint32_t colour; /* 0xRRGGBBAA */
};
lr_status draw_set_lines(struct draw *draw, enum draw_lines which, const struct draw_line *lines, int count);

/* The outer faces' edges. */
lr_status draw_set_grid(struct draw *draw, const lr_grid *grid);

/* The axes from the scanner's centre, x red, y green, z blue, that long. */
lr_status draw_set_axes(struct draw *draw, double length_mm);

/* A cross at a point. */
lr_status draw_set_cursor(struct draw *draw, const double point_mm[3], double size_mm);

/* --- drawing --- */

struct draw_slices {
    bool is_shown[3]; /* across x, y, z */
    double at_mm[3];
    enum draw_image image;
    double low, high;
    lr_colour_map colours;
    double overlay_high; /* the tube is laid over it, up to this; 0 = not */
};

struct draw_params {
    const struct camera_view *view;
    int viewport[4]; /* x, y from below, width, height; all 0 = the whole target */
    bool hides_scanner, hides_lors;
    int hovered_module; /* -1: none */
    struct draw_slices slices;
    bool has_volume; /* of slices.image, and of the density field where there is a mu-map */
    double volume_high;
};

/* Clears and draws. */
lr_status draw_scene(struct draw *draw, struct gl_target *target, const struct draw_params *params);

#endif
