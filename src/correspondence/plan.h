/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A plan divides correspondence images into batches for one atlas, with their points, modules and tiles, in order. This
 * code does not use OpenGL. */
#ifndef LR_CORRESPONDENCE_PLAN_H
#define LR_CORRESPONDENCE_PLAN_H

#include "model/lors/pair_window.h"
#include "model/lors/rows.h"
#include "operator/backend.h"

#include <lr/lors.h>
#include <lr/scanner.h>

/* The largest number of rays per crystal edge. A macropixel then has 4,096 pixels. */
enum { LR_MAX_RASTER_RAYS = 64 };

/* One rendering from one sample point into the window of one primary, that is, the rectangle of its pixels. It shows
 * the modules of one layer. shaders/correspondence/scene.glsl declares it as `struct Image`. Each coordinate of the
 * point is a float and the rest after rounding, mm. */
struct lr_plan_image {
    float point[3];
    float scale; /* factor of weights in forward projections: emission / points per voxel */
    float rest[3];
    uint32_t row; /* counted from the first row of the request */
    int32_t primary;
    /* The left and lower texel of the image's tile; 0 without an atlas. If there is no atlas and modules may hide each
     * other, the image is for some crystals of the primary: first crystal tile_x, end (one past the last) tile_y. */
    int32_t tile_x, tile_y;
    int32_t first_draw; /* first of the image's draws, which are contiguous */
};

/* Splits a number into a float and the rest after rounding. The float is written to memory, because gcc 12 drops the
 * rounding when it vectorises (double)(float)x. */
static inline void lr_split_float(double number, float *rounded, float *rest)
{
    const volatile float kept = (float)number;
    *rounded = kept;
    *rest = (float)(number - (double)*rounded);
}

/* One module drawn into one image. `secondary` is the module's number with flags. The module is usually a secondary.
 * The exceptions follow.
 *
 * With crystal penetration, every module is drawn that lines through the primary may cross, on either side of the
 * point. LR_ONLY_STOPS then means that the pair's roles are exchanged.
 *
 * If modules may hide each other, modules that may stop the image's lines are drawn, too. Modules between the point and
 * the primary come first and have LR_BEFORE_PRIMARY. The other modules that may stop lines are listed among the
 * secondaries and have LR_ONLY_STOPS; they are farther than the primary or do not face the point. Secondaries that may
 * stop lines have LR_HIDES. */
struct lr_plan_draw {
    uint32_t image, secondary;
};

/* The images of one row in a batch; `struct Row` of shaders/correspondence/rows.glsl. */
struct lr_plan_row {
    uint32_t first_image, end_image;
    uint32_t row; /* counted from the first row of the request */
    float factor; /* 1 / points per row */
};

/* The work of one run of the passes. The plan owns the arrays, which are valid until its next call. */
struct lr_batch {
    const struct lr_plan_image *images;
    const struct lr_plan_draw *draws;
    const struct lr_plan_row *rows;
    int num_images, num_draws, num_rows;
    int most_draws; /* most draws of one image */
    int atlas_rows; /* rows of tiles in use */
};

/* The request: work to be rendered. Only LORs of the window count. Rows with zero emission are left out. */
struct lr_plan_work {
    const struct lr_rows *rows;
    struct lr_pair_window window;
    const float *emission; /* [end - begin] of the rows; NULL = all 1, or not known to the host */
    /* True for pictures. If modules may hide each other, pictures show all modules that lines hit, including modules
     * whose pair has no LORs. */
    bool whole;
    const int *primary; /* only images of this primary and its layer; NULL = images of all primaries */
};

/* The point at which the next batch begins. The caller zero-initialises it. */
struct lr_plan_cursor {
    int64_t row; /* counted from the first row of the request */
    int point;
};

struct lr_plan_params {
    const lr_lors *lors;
    int rays;
    int atlas_size;     /* edge of the square atlas, texels; 0 = no atlas */
    int max_images;     /* most images in a batch; used only if there is no atlas */
    bool penetration;   /* list all modules that lines through a primary may cross */
    int image_crystals; /* most crystals of an image, if modules may hide each other, without an atlas; 0 = all */
    const lr_log *log;
};

struct lr_plan {
    const lr_scanner *scanner;
    const lr_lors *lors;
    int rays;
    bool penetration;
    bool hiding; /* true if modules can hide each other; modules that block lines are then drawn */
    int image_crystals;
    int layers;        /* layers of the scanner; 1 with penetration, because its images show all layers */
    int tile[2];       /* tile of the largest module, texels; 0 without an atlas */
    int columns, rows; /* tiles in the atlas; 0 without an atlas */
    int max_images, max_draws;
    struct lr_plan_image *images;
    struct lr_plan_draw *draws;
    struct lr_plan_row *batch_rows;
    struct lr_plan_sight *sights;  /* [num_modules] as seen from the point being planned */
    struct lr_plan_hiding *hidden; /* hiding from the point being planned; NULL unless `hiding` */
    uint64_t *hiders;              /* bit set of modules that may hide an image's secondaries; NULL unless `hiding` */
};

/* Creates a plan. errors: NULL, logged; with an atlas, LR_USAGE for more rays than LR_MAX_RASTER_RAYS, and if the
 * windows of one point do not fit the atlas. */
struct lr_plan *lr_plan_create(const struct lr_plan_params *params);
void lr_plan_destroy(struct lr_plan *plan);

/* Fills *batch with the images of the next points, starting at the cursor, and moves the cursor. All images of a point
 * are in the same batch. A batch is also empty if none of its points sees a pair of the window. Returns false, with an
 * empty batch, if no points are left. */
bool lr_plan_next(struct lr_plan *plan, const struct lr_plan_work *work, struct lr_plan_cursor *cursor,
                  struct lr_batch *batch);

/* Finds the size of the largest module's window in an image, pixels. */
void lr_plan_tile_size(const lr_scanner *scanner, int rays, int tile[2]);

/* --- sweep --- */

/* A projection of all voxels for one window of LORs, batch by batch. */

struct lr_sweep {
    const struct lr_backend_params *params;
    struct lr_plan *plan;
    const char *what; /* text for the progress report: "projecting forward" */
    lr_status (*batch)(void *user, const struct lr_batch *batch);
    void *user;
};

/* Calls `batch` for every batch of the work and reports progress, which reaches 1 at the end of the last window. */
lr_status lr_sweep_run(const struct lr_sweep *sweep, const struct lr_plan_work *work);

/* --- rows --- */

/* Computes matrix rows in order from batches of images. All methods that compute images use it. */
struct lr_row_batches {
    struct lr_plan *plan;
    /* Computes a batch and copies it to the host. Batches follow one another. */
    lr_status (*fetch)(void *user, const struct lr_batch *batch);
    /* Appends the elements of one row of the fetched batch, in any order. LORs may repeat. Several threads call it at
     * once. */
    lr_status (*fill)(void *user, const struct lr_plan_row *row, struct lr_elements *list);
    void *user;
    const struct lr_backend_params *params; /* threads, log and progress are read */
};

/* Hands every row to the sink in order, including empty rows. The elements of a row are sorted, with each LOR once. If
 * the points of a row are in several batches, the row's elements are merged first. */
lr_status lr_row_batches_deliver(const struct lr_row_batches *batches, const struct lr_rows *rows,
                                 const lr_row_sink *sink);

#endif
