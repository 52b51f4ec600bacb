/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A plan divides correspondence images into batches, in order. A batch has the images that fit into one atlas, with
 * their points, modules and tiles. This code does not use OpenGL. */
#pragma once

#include "model/lors/pair_window.h"
#include "model/lors/rows.h"
#include "operator/backend.h"

#include <lr/lors.h>
#include <lr/scanner.h>

/* The largest number of rays per crystal edge. A crystal's macropixel then has 4,096 pixels. */
enum { LR_MAX_RASTER_RAYS = 64 };

/* One image: the modules of one layer as seen from one sample point. Its pixels are the rectangle of one module, the
 * primary. shaders/correspondence/scene.glsl declares it as `struct Image`. Each coordinate of the point is a float and
 * the rest after rounding, mm. */
struct lr_plan_image {
    float point[3];
    float scale; /* factor of weights in forward projections: emission / points per voxel */
    float rest[3];
    uint32_t row; /* row, counted from the first row of the request */
    int32_t primary;
    /* With an atlas, tile_x and tile_y are the left and the lower texel of the image's tile. Without an atlas, the
     * image belongs to the primary's crystals tile_x .. tile_y - 1 if modules may hide each other; otherwise tile_x and
     * tile_y are 0. */
    int32_t tile_x, tile_y;
    int32_t first_draw; /* the first of the image's draws, which follow one another */
};

/* Splits a number into a float and the rest after rounding. The float is written to memory, because gcc 12 drops the
 * rounding when it vectorises (double)(float)x. */
static inline void lr_split_float(double number, float *rounded, float *rest)
{
    const volatile float kept = (float)number;
    *rounded = kept;
    *rest = (float)(number - (double)*rounded);
}

/* One module that is drawn into one image. `secondary`: number of the module, with flags. Modules that are not
 * secondaries are drawn in two cases.
 *
 * 1. Penetration: all modules are drawn that lines through the primary may cross, on both sides of the point.
 * LR_ONLY_STOPS then means that the other module is the primary of this pair.
 *
 * 2. Modules that may hide each other: modules that may stop the image's lines are drawn, too. Modules between the
 * point and the primary come first, with the flag LR_BEFORE_PRIMARY. Modules that are farther than the primary, or do
 * not face the point, follow among the secondaries, with LR_ONLY_STOPS. Secondaries that may stop lines have
 * LR_HIDES. */
struct lr_plan_draw {
    uint32_t image, secondary;
};

/* The images of a row in a batch; `struct Row` of shaders/correspondence/rows.glsl. */
struct lr_plan_row {
    uint32_t first_image, end_image;
    uint32_t row; /* row, counted from the first row of the request */
    float factor; /* 1 / points per row */
};

/* The images of one batch, which one run of the passes computes. The plan owns the arrays. They are valid until the
 * next call of a function of the plan. */
struct lr_batch {
    const struct lr_plan_image *images;
    const struct lr_plan_draw *draws;
    const struct lr_plan_row *rows;
    int num_images, num_draws, num_rows;
    int most_draws; /* largest number of draws of an image */
    int atlas_rows; /* number of rows of tiles in use */
};

/* The requested work. Only LORs of the window count. Rows with zero emission are skipped. */
struct lr_plan_work {
    const struct lr_rows *rows;
    struct lr_pair_window window;
    const float *emission; /* [end - begin] emission of the rows; NULL = all emissions are 1, or the host does not know
                              them */
    /* True for pictures. If modules may hide each other, a picture shows all modules that lines hit, even if the pair
     * has no LORs. */
    bool whole;
    const int *primary; /* only images of this primary and its layer are made; NULL = images of all primaries */
};

/* The position where the next batch begins. The caller sets the struct to zero at the start. */
struct lr_plan_cursor {
    int64_t row; /* row, counted from the first row of the request */
    int point;
};

struct lr_plan_params {
    const lr_lors *lors;
    int rays;
    int atlas_size;     /* edge of the square atlas, texels; 0 = no atlas */
    int max_images;     /* largest number of images in a batch; used only without an atlas */
    bool penetration;   /* true = list all modules that lines through a primary may cross */
    int image_crystals; /* if modules may hide each other and there is no atlas: largest number of crystals of the
                           primary in an image; 0 = all */
    const lr_log *log;
};

struct lr_plan {
    const lr_scanner *scanner;
    const lr_lors *lors;
    int rays;
    bool penetration;
    bool hiding; /* true if modules can hide each other; modules that block lines are then drawn */
    int image_crystals;
    int layers;        /* number of layers of the scanner; 1 with penetration, because an image then shows all layers */
    int tile[2];       /* tile of the largest module, texels; 0 without an atlas */
    int columns, rows; /* number of tiles in the atlas; 0 without an atlas */
    int max_images, max_draws;
    struct lr_plan_image *images;
    struct lr_plan_draw *draws;
    struct lr_plan_row *batch_rows;
    struct lr_plan_sight *sights;  /* [num_modules] as seen from the point that is planned */
    struct lr_plan_hiding *hidden; /* modules that hide others from the planned point; NULL unless `hiding` */
    uint64_t *hiders;              /* bit set of modules that may hide secondaries of an image; NULL unless `hiding` */
};

/* Creates a plan. errors: NULL, logged. With an atlas, LR_USAGE if there are more rays than LR_MAX_RASTER_RAYS, or if
 * the atlas has no room for all images of one point. */
struct lr_plan *lr_plan_create(const struct lr_plan_params *params);
void lr_plan_destroy(struct lr_plan *plan);

/* Fills *batch with the images of the next points from the cursor on, and moves the cursor. All images of a point are
 * in one batch. A batch can be empty, if none of its points sees a pair of the window. Returns false, with an empty
 * batch, if no points are left. */
bool lr_plan_next(struct lr_plan *plan, const struct lr_plan_work *work, struct lr_plan_cursor *cursor,
                  struct lr_batch *batch);

/* Finds the size of the largest module's window in an image, pixels. */
void lr_plan_tile_size(const lr_scanner *scanner, int rays, int tile[2]);

/* --- sweep --- */

/* A projection of all voxels for one window of LORs, in batches. */

struct lr_sweep {
    const struct lr_backend_params *params;
    struct lr_plan *plan;
    const char *what; /* text for the progress report: "projecting forward" */
    lr_status (*batch)(void *user, const struct lr_batch *batch);
    void *user;
};

/* Calls `batch` for every batch of the work. The reported progress reaches 1 at the end of the last window. */
lr_status lr_sweep_run(const struct lr_sweep *sweep, const struct lr_plan_work *work);

/* --- rows --- */

/* A computation of matrix rows, in order, from batches of images. All methods that work on images use it. */
struct lr_row_batches {
    struct lr_plan *plan;
    /* Computes a batch and copies it to the host. The batches come in order. */
    lr_status (*fetch)(void *user, const struct lr_batch *batch);
    /* Appends the elements of one row of the batch, in any order. LORs can be repeated. Several threads call this
     * function at once. */
    lr_status (*fill)(void *user, const struct lr_plan_row *row, struct lr_elements *list);
    void *user;
    const struct lr_backend_params *params; /* threads, log and progress are read */
};

/* Passes every row to the sink in order, even empty rows. The elements of a row are sorted by LOR, and each LOR occurs
 * once. If the points of a row are in several batches, the elements of these batches are merged. */
lr_status lr_row_batches_deliver(const struct lr_row_batches *batches, const struct lr_rows *rows,
                                 const lr_row_sink *sink);
