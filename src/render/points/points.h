/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The fused passes of the `compute` backend: lines or overlaps are computed where they are needed
 * and never stored. One work group handles one image, see shaders/common/visit.glsl. */
#ifndef LR_RENDER_COMPUTE_H
#define LR_RENDER_COMPUTE_H

#include "operator/backend.h"
#include "render/columns/columns.h"
#include "render/pairs/pairs.h"
#include "render/scene.h"

enum lr_compute_pass {
    LR_COMPUTE_FORWARD,
    LR_COMPUTE_BACK,
    LR_COMPUTE_ROWS,
    LR_NUM_COMPUTE_PASSES
};

struct lr_compute {
    struct lr_backend_params params;
    lr_place *place;        /* owned */
    struct gl_context *ctx; /* of the place */
    struct lr_plan *plan;
    struct lr_scene scene;
    struct gl_program *programs[LR_NUM_COMPUTE_PASSES]; /* made when first asked for */
    struct gl_program *collect;
    struct gl_program *order[2]; /* of images (image_order.h) */
    struct gl_buffer *images, *draws, *rows, *sums;
    struct gl_buffer
        *cut_short;          /* says whether a renderer ended loops early; NULL where none does */
    struct gl_buffer *boxes; /* of the modules, with crystal penetration; else NULL */
    int64_t max_window;      /* LORs */
    struct lr_columns *columns; /* where the scanner lets them project; else NULL */
    struct lr_pairs *pairs;     /* where these do, and columns do not; else NULL */
};

/* The context is current. On failure *compute holds nothing but ctx. */
lr_status lr_compute_init(struct lr_compute *compute);
void lr_compute_finish(struct lr_compute *compute);

/* Uploads a batch. errors: LR_USAGE when a point sees too many modules through one. */
lr_status lr_compute_upload(struct lr_compute *compute, const struct lr_batch *batch);

/* What a pass writes to. */
struct lr_compute_output {
    const struct gl_buffer *buffer; /* LOR values, or the element list */
    int64_t num_lors;               /* in the LOR window */
    int64_t capacity;               /* of the element list */
    float fixed_scale;              /* of terms, where LOR values are in fixed point */
};

/* Starts building what a pass runs, unless it was before. */
lr_status lr_compute_start(struct lr_compute *compute, enum lr_compute_pass which);

/* Runs one pass over the uploaded batch. */
lr_status lr_compute_run(struct lr_compute *compute, enum lr_compute_pass which,
                         const struct lr_batch *batch, const struct lr_compute_output *output);

/* After LR_COMPUTE_BACK: adds the batch's image sums to the voxels. */
lr_status lr_compute_collect(struct lr_compute *compute, const struct lr_batch *batch,
                             const struct gl_buffer *voxels);

/* Every element of the rows, in order, to the sink. */
lr_status lr_compute_read_rows(struct lr_compute *compute, const struct lr_rows *rows,
                               const lr_row_sink *sink);

#endif
