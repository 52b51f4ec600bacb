/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Correspondence images of a batch, in one atlas: cluster paper, section II. */
#ifndef LR_RENDER_RASTER_RASTER_H
#define LR_RENDER_RASTER_RASTER_H

#include "gl/resource.h"
#include "render/scene.h"

#include <lr/operator.h>
#include <lr/vector.h>

struct lr_correspondence {
    struct lr_scene *scene;
    const struct lr_plan *plan;
    struct gl_program *program; /* NULL before the first batch, or before it is started */
    struct gl_target *atlas;    /* RG32UI: crystal of the secondary + 1 (0: none), bits of the weight;
                                depth if modules may hide others. With path length also R32F, in mm */
    struct gl_buffer *images, *draws;
    bool path_length;
};

/* path_length: also keeps the distance between the hits, for pictures. single: the atlas has one tile, for batches of
 * one image. */
lr_status lr_correspondence_init(struct lr_correspondence *images, struct lr_scene *scene, const struct lr_plan *plan,
                                 bool path_length, bool single);
void lr_correspondence_finish(struct lr_correspondence *images);

/* Starts building the program if there is none yet. Does not wait. */
lr_status lr_correspondence_start(struct lr_correspondence *images);

/* Renders a batch into the atlas. */
lr_status lr_correspondence_render(struct lr_correspondence *images, const struct lr_batch *batch);

/* --- vectors in textures --- */

/* Numbers of a vector, on the host or at the backend's place, in a texture that can be drawn on: the LOR image of
 * the cluster paper, section III, and voxels. Number k is at (k mod width, k / width). */

struct lr_texels {
    struct gl_target *target; /* R32F; NULL = none */
    int64_t count;
};

/* Zeros; target NULL on error, logged. */
struct lr_texels lr_texels_create(struct gl_context *ctx, const char *label, int64_t count);
/* Makes *texels `count` zeros, in the same texture if it has this size. */
lr_status lr_texels_renew(struct lr_texels *texels, struct gl_context *ctx, const char *label, int64_t count);
void lr_texels_destroy(struct lr_texels *texels);

/* The most numbers that one texture can hold within `bytes`; 0: within the driver's limits alone. */
int64_t lr_texels_capacity(const struct gl_context *ctx, int64_t bytes);

/* Copies from and to a vector of `count` floats; at the place nothing passes through the host. */
lr_status lr_texels_put(struct lr_texels *texels, const lr_vector *from);
lr_status lr_texels_get(const struct lr_texels *texels, lr_vector *to);

/* --- forward --- */

/* Forward projection of correspondence images, cluster paper, section III: a list of points through a vertex
 * shader, blended additively into the LOR image. Points of a draw are blended in their order, so that sums have
 * the same bits each time. */

struct lr_scatter {
    struct lr_scene *scene;
    const struct lr_plan *plan;
    struct gl_program *scatter, *add; /* `add` is built when it first runs */
    float factor;                     /* 1 / N, sample points of a voxel: the caller sets it */
    struct lr_texels voxels;          /* voxels that emit; the caller fills them in */
    /* Gets the LOR image added after many terms for each LOR; the image then begins anew, since a float loses more and
     * more of further terms. No target before that. */
    struct lr_texels total;
    int64_t rays; /* most rays that have terms in the LOR image */
};

/* num_voxels: rows of the requests. On failure *scatter holds nothing. */
lr_status lr_scatter_init(struct lr_scatter *scatter, struct lr_scene *scene, const struct lr_plan *plan,
                          int64_t num_voxels);
void lr_scatter_finish(struct lr_scatter *scatter);

/* Starts a window, whose LOR image holds zeros. */
void lr_scatter_begin(struct lr_scatter *scatter);

/* Adds a batch's images in the atlas to the LORs of the window. */
lr_status lr_scatter_run(struct lr_scatter *scatter, const struct lr_correspondence *images,
                         const struct lr_batch *batch, struct lr_texels *lors);

/* The window's values. */
lr_status lr_scatter_end(struct lr_scatter *scatter, struct lr_texels *lors, lr_vector *values);

/* --- back --- */

/* Back-projection of correspondence images, cluster paper, section IV: the first run takes weights times LOR values
 * and halves the images, adding four pixels; each run after it halves them again, until one texel an image is left.
 * After log2 R runs a texel is a macropixel. */

enum { LR_MOST_HALVINGS = 16 };

struct lr_gather {
    struct lr_scene *scene;
    const struct lr_plan *plan;
    struct gl_program *gather, *reduce, *collect;
    struct gl_target *sums[LR_MOST_HALVINGS]; /* R32F; tiles of half the size from one to the next */
    int tiles[LR_MOST_HALVINGS][2];           /* their tile sizes; the last is 1 x 1 */
    int num_halvings;
    struct gl_buffer *rows;
    struct lr_texels image;                    /* voxels; the caller clears it */
    struct gl_stopwatch *gathers, *reductions; /* owned by the caller; NULL = not measured */
};

/* num_voxels: rows of the requests that will be gathered. On failure *gather holds nothing. */
lr_status lr_gather_init(struct lr_gather *gather, struct lr_scene *scene, const struct lr_plan *plan,
                         int64_t num_voxels);
void lr_gather_finish(struct lr_gather *gather);

/* Adds a batch's images in the atlas to the voxels' sums. */
lr_status lr_gather_run(struct lr_gather *gather, const struct lr_correspondence *images, const struct lr_batch *batch,
                        const struct lr_texels *lors);

/* The block of shaders/raster/reduce.frag. */
struct lr_reduce_pass {
    int32_t source_tile[2], target_tile[2];
};

/* --- matrix rows --- */

/* Matrix rows read off correspondence images: cluster paper, section II.C. */

/* State of reading rows. */
struct lr_row_reader {
    struct lr_correspondence *images;
    struct lr_plan *plan;
    int threads;
    const lr_log *log;
    const lr_progress *progress;
};

/* Renders the rows batch by batch, reads the atlas back, and hands every row to the sink in order,
 * empty ones too. */
lr_status lr_rows_read(const struct lr_row_reader *reader, const struct lr_rows *rows, const lr_row_sink *sink);

/* --- pictures --- */

/* One correspondence image for display, with the distance between the hits. */

/* images: with path length. module: the primary. pixels: [rays * nv][rays * nu] of the module. The scene's window
 * holds all LORs. */
lr_status lr_picture_render(struct lr_correspondence *images, struct lr_plan *plan, const double point_mm[3],
                            int module, lr_pixel *pixels);

#endif
