/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The fused passes of the `compute` backend: lines or overlaps are computed when they are needed and never stored.
 * One work group handles one image, see shaders/correspondence/visit.glsl. */
#ifndef LR_CORRESPONDENCE_COMPUTE_POINTS_POINTS_H
#define LR_CORRESPONDENCE_COMPUTE_POINTS_POINTS_H

#include "correspondence/compute/method.h"
#include "correspondence/plan.h"
#include "correspondence/scene.h"

enum lr_points_pass { LR_POINTS_FORWARD, LR_POINTS_BACK, LR_POINTS_ROWS, LR_NUM_POINTS_PASSES };

struct lr_points {
    struct lr_backend_params params;
    struct gl_context *ctx; /* context of the backend */
    struct lr_plan *plan;
    struct lr_scene scene;
    struct gl_program *programs[LR_NUM_POINTS_PASSES]; /* made when first asked for */
    struct gl_program *collect;
    struct gl_buffer *images, *draws, *rows, *sums;
    struct gl_buffer *cut_short; /* says whether a renderer ended loops early; NULL on renderers that do not */
    struct gl_buffer *boxes;     /* boxes of modules; NULL without crystal penetration */
    int64_t max_window;          /* LORs */
};

/* errors: NULL, logged. The context is current, here and below. Points serve for every scanner and grid. */
void *lr_points_create(const struct lr_method_params *params);
void lr_points_destroy(void *points); /* NULL is allowed */

/* Uploads a batch. errors: LR_USAGE when a point sees too many modules through one. */
lr_status lr_points_upload(struct lr_points *points, const struct lr_batch *batch);

/* The output of a pass. */
struct lr_points_output {
    const struct gl_buffer *buffer; /* LOR values, or the element list */
    int64_t num_lors;               /* in the LOR window */
    int64_t capacity;               /* capacity of the element list */
};

/* Runs one pass over the uploaded batch. */
lr_status lr_points_run(struct lr_points *points, enum lr_points_pass which, const struct lr_batch *batch,
                        const struct lr_points_output *output);

/* Adds, once LR_POINTS_BACK has run, the batch's image sums to the voxels. */
lr_status lr_points_collect(struct lr_points *points, const struct lr_batch *batch, const struct gl_buffer *voxels);

/* The functions of struct lr_method. There are no parts. */
lr_status lr_points_read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink);

#endif
