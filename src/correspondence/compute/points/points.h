/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The points method: passes of the `compute` backend that compute lines or overlaps when they need them, and never
 * store them. A workgroup works on one image, which is the modules seen from one sample point (correspondence/plan.h).
 * shaders/correspondence/visit.glsl describes this work. */
#pragma once

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
    struct gl_buffer *cut_short; /* a flag that a shader sets if the renderer has ended a loop too early; NULL if the
                                    renderer never does so */
    struct gl_buffer *boxes;     /* boxes of modules; NULL without penetration */
    int64_t max_window;          /* largest number of LORs of a window */
};

/* Creates the method, for any scanner and grid. The context must be current in this call and in those below. errors:
 * NULL, logged. */
void *lr_points_create(const struct lr_method_params *params);
void lr_points_destroy(void *points); /* NULL is allowed */

/* Uploads a batch of images. errors: LR_USAGE if a sample point sees more modules through one module than the passes
 * can hold. */
lr_status lr_points_upload(struct lr_points *points, const struct lr_batch *batch);

/* The output of a pass. */
struct lr_points_output {
    const struct gl_buffer *buffer; /* LOR values, or the element list */
    int64_t num_lors;               /* number of LORs of the window */
    int64_t capacity;               /* room of the element list */
};

/* Runs one pass over the batch that was uploaded. Call lr_points_collect for the pass LR_POINTS_COLLECT. */
lr_status lr_points_run(struct lr_points *points, enum lr_points_pass which, const struct lr_batch *batch,
                        const struct lr_points_output *output);

/* Adds the sums of the batch's images to the voxels. LR_POINTS_BACK must have run before. */
lr_status lr_points_collect(struct lr_points *points, const struct lr_batch *batch, const struct gl_buffer *voxels);

/* Lists the elements of rows: a function of struct lr_method. */
lr_status lr_points_read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink);
