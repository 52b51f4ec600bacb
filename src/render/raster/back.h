/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Back-projection of correspondence images: cluster paper, section IV. */
#ifndef LR_RENDER_BACK_H
#define LR_RENDER_BACK_H

#include "render/raster/forward.h"

/* Gathers each image's weight times LOR value, adds its pixels up, and then the images of each voxel. */
struct lr_gather {
    struct lr_scene *scene;
    const struct lr_plan *plan;
    struct gl_program *gather, *collect;
    struct gl_target *sums; /* R32F; a texel for each tile of the atlas */
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
