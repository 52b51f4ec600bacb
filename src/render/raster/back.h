/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Back-projection of correspondence images: cluster paper, section IV. */
#ifndef LR_RENDER_BACK_H
#define LR_RENDER_BACK_H

#include "render/raster/forward.h"

enum { LR_MAX_HALVINGS = 16 };

/* Gathers each image's weight times LOR value, halving the image in every pass until one texel an
 * image is left, and adds the images of each voxel. */
struct lr_gather {
    struct lr_scene *scene;
    const struct lr_plan *plan;
    struct gl_program *gather, *reduce, *collect;
    struct gl_target *sums[LR_MAX_HALVINGS]; /* R32F; tiles of half the size from one to the next */
    int tiles[LR_MAX_HALVINGS][2];           /* their tile sizes; the last is 1 x 1 */
    int num_halvings;
    struct gl_buffer *rows;
    struct gl_target *image; /* R32F: voxel v at (v mod width, v / width) */
    int64_t num_voxels;
    struct gl_stopwatch *gathers, *reductions; /* the caller's; NULL = not measured */
};

/* num_voxels: rows of the requests that will be gathered. */
lr_status lr_gather_init(struct lr_gather *gather, struct lr_scene *scene,
                         const struct lr_plan *plan, int64_t num_voxels);
void lr_gather_finish(struct lr_gather *gather);

/* Starts a new image. */
void lr_gather_clear(struct lr_gather *gather);

/* Adds a batch's images, as they stand in the atlas, to the voxels' sums. */
lr_status lr_gather_run(struct lr_gather *gather, const struct lr_correspondence *images,
                        const struct lr_batch *batch, const struct lr_lor_texture *lors);

/* values: [num_voxels]. */
lr_status lr_gather_read(const struct lr_gather *gather, float *values);

#endif
