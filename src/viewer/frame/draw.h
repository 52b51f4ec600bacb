/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The 3-D scene: modules and crystals, slices and volumes of images, lines. Contents are set once and drawn in every
 * frame. */
#pragma once

#include "gl/pass.h"
#include "viewer/frame/camera.h"

#include <lr/grid.h>
#include <lr/picture.h>
#include <lr/scanner.h>

/* Images that can be in the scene at the same time. */
enum draw_image {
    DRAW_IMAGE = 0,
    DRAW_MU,
    DRAW_TUBE,
    DRAW_SENSITIVITY,
    DRAW_LIVE,
    DRAW_KERNEL,
    DRAW_HISTO,
    DRAW_SECOND, /* an image file opened beside the first one */
    DRAW_NUM_IMAGES
};

/* Groups of lines, which can be set separately. DRAW_LOR and DRAW_CURSOR are drawn over all other objects. */
enum draw_lines { DRAW_GRID = 0, DRAW_AXES, DRAW_LORS, DRAW_LOR, DRAW_CURSOR, DRAW_NUM_LINES };

enum draw_program { DRAW_CRYSTALS = 0, DRAW_BOXES, DRAW_LINES, DRAW_SLICE, DRAW_VOLUME, DRAW_NUM_PROGRAMS };

enum { DRAW_NUM_MAPS = 4 };

struct draw {
    struct gl_texture *images[DRAW_NUM_IMAGES]; /* [z][y][x]; NULL = none, or not complete yet */
    int64_t changes[DRAW_NUM_IMAGES];           /* grows whenever the image's values change */
    double crystals_largest; /* the quantity that the largest crystal value represents; 0 = crystals have no values */

    /* the members below are private */
    struct gl_context *ctx;
    struct gl_program *programs[DRAW_NUM_PROGRAMS];
    struct gl_texture *maps[DRAW_NUM_MAPS + 1]; /* one for each lr_colour_map, and a last one for the tube overlay;
                                                 * 256 x 1 */
    struct gl_texture *empty;                   /* 1 x 1 x 1, used if there is no image */
    int num_modules, num_crystals;
    struct gl_buffer *modules, *colours, *values;
    bool is_lent[DRAW_NUM_IMAGES];
    lr_grid grids[DRAW_NUM_IMAGES];
    float highest[DRAW_NUM_IMAGES];
    struct draw_coming {
        struct gl_texture *texture; /* NULL = no image is being uploaded */
        const lr_image *image;      /* owned by the caller */
        int num_slices;             /* slices uploaded so far */
    } coming[DRAW_NUM_IMAGES];
    struct gl_buffer *lines[DRAW_NUM_LINES];
    int num_lines[DRAW_NUM_LINES];
};

struct draw *draw_create(struct gl_context *ctx);
void draw_destroy(struct draw *draw); /* NULL is allowed */

/* --- what is shown --- */

/* NULL: there is no scanner. */
lr_status draw_set_scanner(struct draw *draw, const lr_scanner *scanner);

/* A colour for each module, 0xRRGGBBAA; alpha is not used. [num_modules] */
lr_status draw_set_module_colours(struct draw *draw, const uint32_t *colours);

/* Values of crystals: 0 .. 1 on the perceptual colour map. A crystal with a value below 0 has its module's colour.
 * values: [num_crystals]; NULL: no values. largest: the quantity that 1 represents. */
lr_status draw_set_crystal_values(struct draw *draw, const float *values, double largest);

/* Copies an image to the device. NULL removes the image. */
lr_status draw_set_image(struct draw *draw, enum draw_image which, const lr_image *image);

/* Copies an image to the device in pieces. draw_advance uploads one piece in each frame. The
 * old image disappears at once; the new one appears when it is complete. The caller keeps the image until then, or
 * until another image is set. largest: the value of its largest voxel. */
lr_status draw_begin_image(struct draw *draw, enum draw_image which, const lr_image *image, double largest);
void draw_advance(struct draw *draw);

/* Shows a texture that the caller owns, [z][y][x] on the grid, until another image is set. highest: the value of its
 * largest voxel. */
void draw_lend_image(struct draw *draw, enum draw_image which, struct gl_texture *texture, const lr_grid *grid,
                     double highest);

/* The grid of an image that is on the device or being uploaded; NULL: there is no such image. */
const lr_grid *draw_get_grid(const struct draw *draw, enum draw_image which);

/* The value of a voxel that the slices show; waits for the device. NaN if there is no image or no such voxel. */
double draw_get_voxel(const struct draw *draw, enum draw_image which, const int voxel[3]);

/* The colour of the tube overlay. t: value / largest value, 0 .. 1. No other colour map has this hue. */
lr_colour draw_tube_colour(double t);

struct draw_line {
    float from[3], to[3];
    uint32_t colour; /* 0xRRGGBBAA */
};
lr_status draw_set_lines(struct draw *draw, enum draw_lines which, const struct draw_line *lines, int count);

/* Draws the edges of the grid's outer faces. */
lr_status draw_set_grid(struct draw *draw, const lr_grid *grid);

extern const uint32_t draw_axis_colours[3]; /* of x, y, z: 0xRRGGBBAA */

/* Draws lines of a length along the axes. DRAW_AXES: from the point on; x is red, y green, z blue. DRAW_CURSOR: to both
 * sides of the point, in one colour. */
lr_status draw_set_cross(struct draw *draw, enum draw_lines which, const double point_mm[3], double length_mm);

/* --- drawing --- */

/* Ways in which slices combine two images. The colours of a difference reach from minus to plus the width of the first
 * image's window, the colours of a ratio from 1/2 to 2. A field of a checkerboard is an eighth of the longest side of
 * the first image's box. */
enum draw_mix { DRAW_MIX_NONE = 0, DRAW_MIX_FUSED, DRAW_MIX_DIFFERENCE, DRAW_MIX_RATIO, DRAW_MIX_CHECKERED };

enum draw_shape { DRAW_NO_REGION = 0, DRAW_BOX, DRAW_ELLIPSOID, DRAW_EVERYWHERE };

/* A region of interest: the voxels whose centre is within the shape, and whose value is within the range. */
struct draw_region {
    enum draw_shape shape;
    double middle_mm[3], half_mm[3];
    double range[2]; /* least and largest value, both inside */
};

struct draw_slices {
    bool is_shown[3]; /* slices across x, y, z; panes show them all */
    double at_mm[3];
    enum draw_image image;
    double low, high;
    lr_colour_map colours;
    double overlay_high; /* largest value of the tube overlay; 0 = no overlay */
    bool is_smooth;      /* interpolates between voxels */
    bool is_projected;   /* panes show the largest value along their axis */
    enum draw_mix mix;
    enum draw_image second; /* the image that is combined with `image` */
    lr_colour_map second_colours;
    double opacity; /* opacity of the second image when fused, 0 .. 1 */
    struct draw_region region;
};

struct draw_params {
    const struct camera_view *view;
    int viewport[4]; /* x, y of the lower left corner, width, height */
    bool hides_scanner, hides_lors;
    int hovered_module; /* -1: none */
    struct draw_slices slices;
    double second_range[2]; /* lowest and highest value shown of the second image */
    bool has_volume; /* shows slices.image as a volume, from slices.low to slices.high, in the haze of the mu-map */
};

/* Clears the viewport and draws the scene. */
lr_status draw_scene(struct draw *draw, struct gl_target *target, const struct draw_params *params);

/* Clears the viewport and draws the slice across `axis`, as seen by params->view. */
lr_status draw_pane(struct draw *draw, struct gl_target *target, const struct draw_params *params, int axis);

/* --- pictures beside the scene --- */

/* Puts a flat picture for a panel into a texture, which is made again if its size has changed. texels: RGBA,
 * [size[1]][size[0]]. *texture: owned by the caller; NULL = none yet. */
lr_status draw_set_picture(struct gl_texture **texture, struct gl_context *ctx, const char *label, const int size[2],
                           const uint8_t *texels);
