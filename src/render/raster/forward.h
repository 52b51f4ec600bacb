/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Forward projection of correspondence images, cluster paper, section III: a list of points through a vertex
 * shader, blended additively into the LOR image. Points of a draw are blended in their order, so that sums have
 * the same bits each time. */
#ifndef LR_RENDER_FORWARD_H
#define LR_RENDER_FORWARD_H

#include "render/raster/correspondence.h"
#include "render/raster/texels.h"

struct lr_scatter {
    struct lr_scene *scene;
    const struct lr_plan *plan;
    struct gl_program *scatter, *add; /* add: built when it is first run */
    float factor;                     /* 1 / N, sample points of a voxel: the caller sets it */
    struct lr_texels voxels;          /* that emit: the caller puts them in */
    struct lr_texels total; /* after many terms for each LOR the image is added to this one and begins anew, as a
                               float loses more and more of what is added to it; no target before that */
    int64_t rays;           /* that the LOR image has terms of, at most */
};

/* num_voxels: rows of the requests. On failure *scatter holds nothing. */
lr_status lr_scatter_init(struct lr_scatter *scatter, struct lr_scene *scene, const struct lr_plan *plan,
                          int64_t num_voxels);
void lr_scatter_finish(struct lr_scatter *scatter);

/* Starts a window, whose LOR image holds zeros. */
void lr_scatter_begin(struct lr_scatter *scatter);

/* Adds a batch's images, as they stand in the atlas, to the LORs of the window. */
lr_status lr_scatter_run(struct lr_scatter *scatter, const struct lr_correspondence *images,
                         const struct lr_batch *batch, struct lr_texels *lors);

/* The window's values. */
lr_status lr_scatter_end(struct lr_scatter *scatter, struct lr_texels *lors, lr_vector *values);

#endif
