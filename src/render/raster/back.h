/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Back-projection of correspondence images, cluster paper, section IV: the first run takes weights times LOR values
 * and halves the images, adding four pixels; each run after it halves them again, until one texel an image is left.
 * After log2 R runs a texel is a macropixel. */
#ifndef LR_RENDER_BACK_H
#define LR_RENDER_BACK_H

#include "render/raster/correspondence.h"
#include "render/raster/texels.h"

enum { LR_MOST_HALVINGS = 16 };

struct lr_gather {
    struct lr_scene *scene;
    const struct lr_plan *plan;
    struct gl_program *gather, *reduce, *collect;
    struct gl_target *sums[LR_MOST_HALVINGS]; /* R32F; tiles of half the size from one to the next */
    int tiles[LR_MOST_HALVINGS][2];           /* their tile sizes; the last is 1 x 1 */
    int num_halvings;
    struct gl_buffer *rows;
    struct lr_texels image;                    /* voxels */
    struct gl_stopwatch *gathers, *reductions; /* the caller's; NULL = not measured */
};

/* num_voxels: rows of the requests that will be gathered. On failure *gather holds nothing. */
lr_status lr_gather_init(struct lr_gather *gather, struct lr_scene *scene, const struct lr_plan *plan,
                         int64_t num_voxels);
void lr_gather_finish(struct lr_gather *gather);

/* Starts a new image. */
void lr_gather_clear(struct lr_gather *gather);

/* Adds a batch's images, as they stand in the atlas, to the voxels' sums. */
lr_status lr_gather_run(struct lr_gather *gather, const struct lr_correspondence *images, const struct lr_batch *batch,
                        const struct lr_texels *lors);

/* shaders/raster/reduce.frag over whole targets, with so many texels along each edge for one; and its block. */
struct lr_reduce_pass {
    int32_t source_tile[2], target_tile[2];
};
struct gl_program *lr_reduce_start(struct gl_context *ctx, int step);

#endif
