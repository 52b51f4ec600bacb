/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_PICTURE_H
#define LR_PICTURE_H

#include <lr/direct.h>
#include <lr/doctor.h>
#include <lr/grid.h>
#include <lr/operator.h>
#include <lr/scanner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Pictures of numbers in RGB: colour maps, labels, panels. lr_png_write writes a picture's rgb and size to a file; the
 * functions here open no file except the font's. Sizes and corners are in screen pixels, x to the right, y downwards
 * from the top left corner. Drawing outside a picture is cut off and is no error.
 * Threads: different pictures may be drawn at the same time. */

typedef struct lr_colour {
    uint8_t r, g, b;
} lr_colour;

/* A picture in RGB, eight bits a colour. */
typedef struct lr_picture {
    int size[2];  /* width, height */
    uint8_t *rgb; /* [height][width][3], first row on top; owned */
} lr_picture;

/* Creates a black picture. Destroying NULL is allowed.
 * errors: NULL, logged, for sizes that are not positive or are above 65,536. */
LR_API lr_picture *lr_picture_create(const int size[2], const lr_log *log);
LR_API void lr_picture_destroy(lr_picture *picture);

/* --- shapes and text --- */

/* Draw a rectangle: filled, or only its border, one pixel wide and within the rectangle. */
LR_API void lr_picture_fill(lr_picture *picture, const int corner[2], const int size[2], lr_colour colour);
LR_API void lr_picture_frame(lr_picture *picture, const int corner[2], const int size[2], lr_colour colour);

/* Draws a line one pixel wide, both ends included. */
LR_API void lr_picture_line(lr_picture *picture, const int from[2], const int to[2], lr_colour colour);

/* The look of a line of text. Zero fields are defaults. */
typedef struct lr_text_style {
    lr_colour colour;
    int size_px; /* size of the letters (an em), up to 4,096; 0 = 13 */
    int most_px; /* largest width; longer text is cut and ends with an ellipsis; 0 = up to the picture's edge */
    bool bold;
    bool upwards; /* the text is rotated by 90 degrees and reads upwards */
} lr_text_style;

/* Writes one line of UTF-8 in DejaVu Sans. corner: the top left corner of the text as it appears in the picture.
 * Control characters show as blanks, and bytes that are not UTF-8 as '?'. Nothing is written if not even the ellipsis
 * fits. Only the first 1,023 bytes are written. If memory runs out, the text is left out; functions below that make
 * whole pictures then log a warning, once per process. */
LR_API void lr_picture_text(lr_picture *picture, const int corner[2], const char *text, const lr_text_style *style);

/* The width in pixels of a whole text, and the height in pixels of any line. */
LR_API int lr_picture_text_width(const char *text, const lr_text_style *style);
LR_API int lr_picture_text_height(const lr_text_style *style);

/* Copies `source` into the picture, with the top left corner of `source` at `corner`. */
LR_API void lr_picture_paste(lr_picture *picture, const int corner[2], const lr_picture *source);

/* --- maps of numbers --- */

/* Colours for numbers. */
typedef enum lr_colour_map {
    LR_COLOURS_GREY = 0,     /* black to white */
    LR_COLOURS_INVERSE_GREY, /* white to black, as in nuclear medicine */
    LR_COLOURS_PERCEPTUAL,   /* dark violet, blue, green, yellow: equal steps of lightness in Oklab */
    LR_COLOURS_DIVERGING     /* for signed numbers: blue below 0.5, white at 0.5, red-brown above; equally light on both
                                sides, and distinct for the colour-blind */
} lr_colour_map;

/* The colour of 0 <= t <= 1. A smaller or larger t has the colour of 0 or 1, and NaN is black. */
LR_API lr_colour lr_colour_of(lr_colour_map map, double t);

/* An array of numbers to be drawn; zero fields are defaults. */
typedef struct lr_map_params {
    const float *values;
    int size[2];           /* columns and rows of the array */
    int64_t stride[2];     /* number of elements from a column to the next, and from a row to the next, which may be
                              negative; 0 = 1 and size[0] */
    bool first_row_on_top; /* false: the first row is at the bottom, +y is up */
    int drawn_size[2];     /* size of the drawn map in screen pixels (nearest neighbour); 0 = one pixel per number */
    double low, high;      /* ends of the colour map; both 0 = least and largest finite value */
    lr_colour_map colours;
    lr_colour not_a_number; /* colour of NaN */
} lr_map_params;

/* Draws the map with its top left corner at `corner`. */
LR_API void lr_picture_map(lr_picture *picture, const int corner[2], const lr_map_params *params);

/* A vertical colour bar. Round values are at its right; to the right of the values is their unit, turned to read
 * upwards. Zero fields are defaults. */
typedef struct lr_bar_params {
    int size[2]; /* size of the bar without text; 0 = 12 x 100 */
    double low, high;
    lr_colour_map colours;
    const char *unit; /* unit of the values; NULL = none */
    lr_colour text;
    int text_px; /* size of the letters; 0 = 12 */
} lr_bar_params;

/* Draws the bar with its top left corner at `corner`. */
LR_API void lr_picture_bar(lr_picture *picture, const int corner[2], const lr_bar_params *params);

/* Returns the number of pixels from the bar's left edge to the end of its text. */
LR_API int lr_picture_bar_width(const lr_bar_params *params);

/* --- correspondence images --- */

/* The quantity that a correspondence image shows. */
typedef enum lr_correspondence_view {
    LR_VIEW_CRYSTALS = 0, /* false colours of the cluster paper: red = (r + 1) / nu, green = (s + 1) / nv of the
                             secondary module; grey if the line ends in no crystal */
    LR_VIEW_WEIGHTS       /* weight in the perceptual colour map; weight 0 is grey */
} lr_correspondence_view;

/* Parameters of lr_picture_correspondence. Zero fields are defaults. */
typedef struct lr_correspondence_params {
    const lr_pixel *pixels; /* pixels from lr_operator_picture */
    const lr_scanner *scanner;
    int module; /* the primary module, which the picture shows */
    int rays;   /* R of the pixels */
    lr_correspondence_view view;
    double high;       /* weight at the end of the colour map; 0 = the largest weight */
    int zoom;          /* screen pixels per pixel, at least 1; 0 = such that the longer side has about 256 */
    bool crystal_grid; /* thin lines between the primary's crystals, if crystals are at least 4 screen pixels wide */
    bool labelled;     /* axes in mm at the left and below, and a legend of the false colours or a colour bar at the
                          right */
    const lr_log *log;
} lr_correspondence_params;

/* A new picture, u to the right and v upwards.
 * errors: NULL, logged: LR_USAGE for a module that does not exist, or an invalid number of rays. */
LR_SIZED(lr_correspondence_params, lr_picture *, lr_picture_correspondence, (const lr_correspondence_params *params),
         (params));

/* --- sampled against exact --- */

/* Rows of one point, restricted to one primary module. */
typedef struct lr_comparison_params {
    const lr_pixel *pixels; /* pixels of the point with the primary, from lr_operator_picture; they give the position of
                               each element on the primary's crystals */
    int pixel_rays;         /* R of the pixels: number of pixels per crystal and axis */
    const lr_lors *lors;
    int module; /* the primary module */
    const lr_row *exact;
    const lr_row *sampled; /* [num_sampled] */
    const int *rays;       /* [num_sampled] R of each row */
    int num_sampled;
    const char *title;    /* NULL = none */
    const char *subtitle; /* NULL = none */
    const lr_log *log;
} lr_comparison_params;

/* A new picture on white. The errors of each sampled row are given in numbers (lr_row_compare); the expected relative
 * error 0.6 / R stands beside the relative error. Each row has three panels: sampled, exact, and their difference in
 * percent of the largest exact element, from blue (too small) over white to red-brown (too large). A panel shows the
 * primary module, u to the right and v upwards in mm. Every crystal is cut into the areas that belong to different
 * LORs; the colour of an area shows its element, and grey means no LOR. All panels of weights have the same scale. Each
 * panel of differences has its own scale, written on its colour bar. With two or more sampled rows there is also a
 * chart of errors over R.
 * errors: NULL, logged: LR_USAGE for a module that does not exist, missing rows, or an invalid R. */
LR_SIZED(lr_comparison_params, lr_picture *, lr_picture_comparison, (const lr_comparison_params *params), (params));

/* --- images --- */

/* The plane of a slice, and its orientation in the picture, which is that of medical viewers. */
typedef enum lr_plane {
    LR_PLANE_TRANSAXIAL = 0, /* x to the left, y upwards: seen from the feet */
    LR_PLANE_CORONAL,        /* x to the left, z upwards: seen from the front */
    LR_PLANE_SAGITTAL        /* y to the left, z upwards: the front is on the left */
} lr_plane;

/* Parameters of lr_picture_slice. Zero fields are defaults. */
typedef struct lr_slice_params {
    const lr_image *image;
    lr_plane plane;
    double position_mm;   /* position along the plane's normal; the nearest slice is shown */
    double pixels_per_mm; /* 0 = the longer side has about 256 pixels, and voxels of at least one pixel have a whole
                             number of pixels */
    double low, high;     /* ends of the colour map; both 0: from 0, or the least value if negative, to the slice's
                             largest value */
    lr_colour_map colours;
    bool axes;        /* axes in mm at the left and below */
    bool scale_bar;   /* a scale bar under the slice; its length in mm is 1, 2 or 5 times a power of ten */
    bool colour_bar;  /* a colour bar at the right of the slice */
    const char *unit; /* unit on the colour bar */
    const lr_log *log;
} lr_slice_params;

/* A new picture of one slice of an image on white; or NULL, logged. */
LR_SIZED(lr_slice_params, lr_picture *, lr_picture_slice, (const lr_slice_params *params), (params));

/* --- charts --- */

/* One curve. In a chart with groups: the bars of one colour, one bar for each group. */
typedef struct lr_curve {
    const char *name;
    const double *x, *y; /* [count]; NaN in y leaves a gap. x is not read for bars */
    int count;
} lr_curve;

/* Parameters of lr_picture_chart. Zero fields are defaults. */
typedef struct lr_chart_params {
    const lr_curve *curves; /* [num_curves] */
    int num_curves;
    const char *across, *up;   /* names of the axes, with their units; the upward one begins at 0; NULL = none */
    const char *const *groups; /* [num_groups] names of groups of bars, which take the place of curves; NULL = none */
    int num_groups;
    const lr_log *log;
} lr_chart_params;

/* A new picture on white: curves or bars in colours that colour-blind readers can tell apart, with a legend below; or
 * NULL, logged. */
LR_SIZED(lr_chart_params, lr_picture *, lr_picture_chart, (const lr_chart_params *params), (params));

/* --- counts --- */

/* Parameters of lr_picture_sinogram. Zero fields are defaults. */
typedef struct lr_sinogram_params {
    const lr_lors *lors;     /* required, of a scanner */
    const lr_lor_data *data; /* required, dense or sparse */
    double z_mm;             /* with a thickness: only LORs whose middle is within half the thickness from z_mm */
    double thickness_mm;     /* 0 = all LORs */
    const lr_log *log;
    const lr_progress *progress;
} lr_sinogram_params;

/* A new picture on white. It shows the mean value of the LORs in coincidence with the same distance and angle. The
 * distance from the z axis is to the right, in mm, positive along the line's transaxial normal. The angle of this
 * normal is upwards, 0 to 180 degrees from x to y. Bins are about as wide as the smallest crystal; bins without a LOR
 * are pale blue. All LORs are visited.
 * errors: NULL, logged: LR_USAGE for histo-images; LR_BAD_INPUT if no LOR's middle lies in the slice; LR_FAILED;
 * LR_CANCELLED without a message. */
LR_SIZED(lr_sinogram_params, lr_picture *, lr_picture_sinogram, (const lr_sinogram_params *params), (params));

/* --- examined scanners --- */

/* Parameters of lr_picture_diagnosis. Zero fields are defaults. */
typedef struct lr_diagnosis_params {
    const lr_scanner_draft *draft;
    const lr_diagnosis *diagnosis; /* the findings about the draft */
    const lr_grid *grid;           /* a grid to draw; NULL = none */
    const lr_log *log;
} lr_diagnosis_params;

/* A new picture with a white background. It shows the modules' boxes from +z along the axis (x to the right, y upwards)
 * and from the side (z to the right, y upwards), with axes in mm. The field of view is a circle labelled with its
 * diameter, and the grid is a rectangle. Modules with probable errors are red and numbered. A legend and the findings
 * are below. errors: NULL, logged. */
LR_SIZED(lr_diagnosis_params, lr_picture *, lr_picture_diagnosis, (const lr_diagnosis_params *params), (params));

/* --- look-up tables of the family direct --- */

/* A new picture of the tables on white. LORmap is one panel. Two panels show mSR as the number of its offsets in each
 * column along z and along y. Three panels show mSRval in the slice z = 0 for the first, a middle and the last
 * identifier, each on its own scale. x is to the left, y or z upwards, in mm, as in pictures of slices.
 * errors: NULL, logged. */
LR_API lr_picture *lr_picture_direct_tables(const lr_direct_tables *tables, const lr_log *log);

/* --- panels --- */

/* One picture of a mosaic. */
typedef struct lr_tile {
    const lr_picture *picture; /* NULL = an empty tile */
    const char *caption;       /* NULL = none */
} lr_tile;

/* Parameters of lr_picture_mosaic. Zero fields are defaults. */
typedef struct lr_mosaic_params {
    const lr_tile *tiles;
    int num_tiles;
    int columns;          /* 0 = all in one row */
    int gap;              /* between tiles and around them; 0 = 12 */
    const char *title;    /* NULL = none */
    const char *subtitle; /* text in small letters under the title, broken into lines of the mosaic's width, which is
                             then at least 420 pixels; NULL = none */
    const lr_log *log;
} lr_mosaic_params;

/* Makes a picture with the tiles in rows on white, each under its caption. A column is as wide as its widest picture or
 * caption. Captions of more than 420 pixels are shortened to the column's width, and titles of more than 1,000 pixels
 * to the mosaic's width. errors: NULL, logged. */
LR_SIZED(lr_mosaic_params, lr_picture *, lr_picture_mosaic, (const lr_mosaic_params *params), (params));

#ifdef __cplusplus
}
#endif

#endif
