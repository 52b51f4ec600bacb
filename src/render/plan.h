/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Batches of correspondence images in one atlas: their points, modules and tiles, in order. No OpenGL here. */
#ifndef LR_RENDER_PLAN_H
#define LR_RENDER_PLAN_H

#include "model/lors/elements.h"
#include "model/lors/pair_window.h"
#include "model/lors/rows.h"
#include "operator/backend.h"

#include <lr/lors.h>
#include <lr/scanner.h>

/* Most rays per crystal edge: a macropixel then has 4,096 pixels. */
enum { LR_MAX_RASTER_RAYS = 64 };

/* One rendering of one sample point into one primary's window, which shows the modules of one
 * layer; `struct Image` of shaders/common/scene.glsl. A point is given as floats and the rests after rounding. */
struct lr_plan_image {
    float point[3];
    float scale; /* factor of weights in forward projection: emission / points per voxel */
    float rest[3];
    uint32_t row; /* counted from the request's first row */
    int32_t primary;
    /* Left and lower texel of its tile; 0 without an atlas. If modules may hide each other and there is no atlas: the
     * first crystal of the primary that the image is for, and the one after the last. */
    int32_t tile_x, tile_y;
    int32_t first_draw; /* its draws follow each other */
};

/* Splits a number into a float and the rest after rounding. The float goes through memory,
 * because gcc 12 drops the rounding when it vectorises (double)(float)x. */
static inline void lr_split_float(double number, float *rounded, float *rest)
{
    const volatile float kept = (float)number;
    *rounded = kept;
    *rest = (float)(number - (double)*rounded);
}

/* One module drawn into one image: a secondary, or with penetration any module that lines through the primary may
 * cross, on either side of the point. A flag LR_ONLY_STOPS in the module's number then says that the pair's roles are
 * exchanged. If modules may hide each other, modules that may stop the image's lines are drawn, too: first, with
 * LR_BEFORE_PRIMARY, modules between the point and the primary; then, among the secondaries, modules with
 * LR_ONLY_STOPS, which are farther than the primary or do not face the point. Secondaries that may stop lines have
 * LR_HIDES. */
struct lr_plan_draw {
    uint32_t image, secondary;
};

/* The images of one row within a batch; `struct Row` of shaders/common/rows.glsl. */
struct lr_plan_row {
    uint32_t first_image, end_image;
    uint32_t row; /* counted from the request's first row */
    float factor; /* 1 / points per row */
};

/* The work of one set of passes. The arrays belong to the plan and live until its next call. */
struct lr_batch {
    const struct lr_plan_image *images;
    const struct lr_plan_draw *draws;
    const struct lr_plan_row *rows;
    int num_images, num_draws, num_rows;
    int most_draws; /* most draws of one image */
    int atlas_rows; /* rows of tiles in use */
};

/* Work to be rendered: rows, the LORs that count, and the emission of each row (NULL: all 1, or not known to the
 * host). Rows of zero emission are left out. */
struct lr_plan_work {
    const struct lr_rows *rows;
    struct lr_pair_window window;
    const float *emission; /* [end - begin] */
    /* Pictures show all modules that lines meet if modules may hide each other, also of pairs without LORs. */
    bool whole;
    const int *primary; /* only the image with this primary, of its own layer; NULL = images with all primaries */
};

/* The place at which a batch ended; zero-initialise. */
struct lr_plan_cursor {
    int64_t row; /* counted from the request's first row */
    int point;
};

struct lr_plan_params {
    const lr_lors *lors;
    int rays;
    int atlas_size;     /* edge of the square atlas, texels; 0 = no atlas, but: */
    int max_images;     /* most images in a batch */
    bool penetration;   /* list all modules that lines through a primary may cross */
    int image_crystals; /* of an image if modules may hide each other, without an atlas; 0 = all of the primary */
    const lr_log *log;
};

struct lr_plan {
    const lr_scanner *scanner;
    const lr_lors *lors;
    int rays;
    bool penetration;
    bool hiding; /* modules can hide each other, so those that block lines are listed */
    int image_crystals;
    int layers;        /* layers of the scanner; 1 with penetration, because its images show all layers */
    int tile[2];       /* tile of the largest module, texels; 0 without an atlas */
    int columns, rows; /* tiles in the atlas; 0 without */
    int max_images, max_draws;
    struct lr_plan_image *images;
    struct lr_plan_draw *draws;
    struct lr_plan_row *batch_rows;
    struct lr_plan_sight *sights;  /* [num_modules], of the point being planned */
    struct lr_plan_hiding *hidden; /* hiding seen from the point being planned; NULL unless `hiding` */
    uint64_t *hiders;              /* bits of modules that may hide an image's secondaries; NULL unless `hiding` */
};

/* errors: NULL; with an atlas LR_USAGE for more than LR_MAX_RASTER_RAYS, or if the windows of one point do not fit
 * it. */
struct lr_plan *lr_plan_create(const struct lr_plan_params *params);
void lr_plan_destroy(struct lr_plan *plan);

/* Fills *batch with the images of the points from the cursor on, of whole points only, and moves the cursor. Returns
 * false if no points are left (the batch is then empty). A batch may be empty before the end if none of its points
 * sees a pair of the window. */
bool lr_plan_next(struct lr_plan *plan, const struct lr_plan_work *work, struct lr_plan_cursor *cursor,
                  struct lr_batch *batch);

/* Pixels of the largest module's window. */
void lr_plan_tile_size(const lr_scanner *scanner, int rays, int tile[2]);

/* --- sweep --- */

/* A projection of all voxels, batch by batch, for one window of LORs. */

struct lr_sweep {
    const struct lr_backend_params *params;
    struct lr_plan *plan;
    const char *what; /* for the progress: "projecting forward" */
    lr_status (*batch)(void *user, const struct lr_batch *batch);
    void *user;
};

/* The rows of a projection: all voxels of the grid. */
struct lr_rows lr_sweep_voxels(const struct lr_backend_params *params);

/* Passes on every batch of the work and reports progress. All windows together count as 1. */
lr_status lr_sweep_run(const struct lr_sweep *sweep, const struct lr_plan_work *work);

/* --- rows --- */

/* Matrix rows in order from batches of images, for all methods that compute images. */
struct lr_row_batches {
    struct lr_plan *plan;
    /* Computes a batch and copies it to the host; called for one batch after the other. */
    lr_status (*fetch)(void *user, const struct lr_batch *batch);
    /* Appends the elements of one row of that batch, in any order, repeats allowed. Called from
     * several threads at once. */
    lr_status (*fill)(void *user, const struct lr_plan_row *row, struct lr_elements *list);
    void *user;
    int threads;
    const lr_log *log;
    const lr_progress *progress;
};

/* Hands every row to the sink in order, empty ones too, each sorted and without repeats; rows whose
 * points are in several batches are put together. */
lr_status lr_row_batches_deliver(const struct lr_row_batches *batches, const struct lr_rows *rows,
                                 const lr_row_sink *sink);

#endif
