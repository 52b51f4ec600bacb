/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The points method: passes of the `compute` backend that compute lines or overlaps when they need them, and never
 * store them. One work group works on one image of shaders/correspondence/visit.glsl. */
#ifndef LR_CORRESPONDENCE_COMPUTE_POINTS_POINTS_H
#define LR_CORRESPONDENCE_COMPUTE_POINTS_POINTS_H

#include "correspondence/compute/method.h"
#include "correspondence/plan.h"
#include "correspondence/scene.h"

enum lr_points_pass { LR_POINTS_FORWARD, LR_POINTS_BACK, LR_POINTS_ROWS, LR_POINTS_COLLECT, LR_NUM_POINTS_PASSES };

struct lr_points {
    struct lr_backend_params params;
    struct gl_context *ctx; /* context of the backend */
    struct lr_plan *plan;
    struct lr_scene scene;
    struct gl_program *programs[LR_NUM_POINTS_PASSES]; /* each is made at its first use */
    struct gl_buffer *images, *draws, *rows, *sums;
    struct gl_buffer *cut_short; /* says if a renderer has ended loops too early; NULL if the renderer never does so */
    struct gl_buffer *boxes;     /* boxes of modules; NULL without penetration */
    int64_t max_window;          /* number of LORs */
};

/* Creates the method, which can do any scanner and grid. The context must be current in this call and in those below.
 * errors: NULL, logged. */
void *lr_points_create(const struct lr_method_params *params);
void lr_points_destroy(void *points); /* NULL is allowed */

/* Uploads a batch. errors: LR_USAGE if a point sees too many modules through one module. */
lr_status lr_points_upload(struct lr_points *points, const struct lr_batch *batch);

/* The output of a pass. */
struct lr_points_output {
    const struct gl_buffer *buffer; /* LOR values, or the element list */
    int64_t num_lors;               /* number of LORs of the window */
    int64_t capacity;               /* room of the element list */
};

/* Runs one pass over the batch that was uploaded. LR_POINTS_COLLECT is run by lr_points_collect instead. */
lr_status lr_points_run(struct lr_points *points, enum lr_points_pass which, const struct lr_batch *batch,
                        const struct lr_points_output *output);

/* Adds the sums of the batch's images to the voxels. LR_POINTS_BACK must have run before. */
lr_status lr_points_collect(struct lr_points *points, const struct lr_batch *batch, const struct gl_buffer *voxels);

/* Functions of struct lr_method. The method has no projections of parts. */
lr_status lr_points_read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink);

#endif
