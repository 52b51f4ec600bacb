/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections over module pairs in any orientation, pair by pair, in exact mode: docs/method/correspondence.md, "Tilted
 * pairs". In a back-projection, one thread adds up the sum of a voxel, with the same bits in every run. In a forward
 * projection, several threads add to a LOR in any order. In deterministic mode, these sums are in fixed point. */
#pragma once

#include "correspondence/compute/method.h"
#include "correspondence/compute/rows/merge.h"
#include "correspondence/scene.h"
#include "gl/pass.h"
#include "gl/timer.h"

enum lr_pairs_program {
    LR_PAIRS_FORWARD = 0,
    LR_PAIRS_BACK,
    LR_PAIRS_ROWS,       /* lists elements of the grid's points */
    LR_PAIRS_POINT_ROWS, /* lists elements of any points */
    LR_NUM_PAIRS_PROGRAMS
};

struct lr_pairs {
    struct lr_backend_params params;
    struct gl_context *ctx; /* context of the backend */
    bool may_be_near;       /* true if a crystal may look so large from a point that it must be divided */
    /* True if, over the plane of one module of a pair, some point of the grid may be as high as a part of the other
     * module. Through this point, the first module sees only the parts of the other module that are higher than the
     * point. */
    bool meets_horizon;
    int64_t max_window; /* largest number of values of a window */
    struct gl_buffer *modules;
    struct lr_scene_masks masks;
    struct gl_buffer *image; /* input or output, in the grid's order */
    struct gl_buffer *state;
    struct gl_program *programs[LR_NUM_PAIRS_PROGRAMS]; /* each is started at first use */
    struct lr_merge_programs merge;                     /* programs for rows; each is started at first use */
    struct gl_stopwatch *watch;                         /* not owned; times the projections */
};

/* Creates the method, for exact mode with neither attenuation along lines nor penetration. No module may hide another.
 * The context must be current in this call and in those below. errors: NULL, logged. */
void *lr_pairs_create(const struct lr_method_params *params);
void lr_pairs_destroy(void *pairs); /* NULL is allowed */

/* Returns a program, and starts it at its first use. errors: NULL, logged. */
struct gl_program *lr_pairs_program(struct lr_pairs *pairs, enum lr_pairs_program which);

/* Checks that the device has ended no loop too early. errors: LR_USAGE, logged, if it has. */
lr_status lr_pairs_check_finished(const struct lr_pairs *pairs);

/* --- scene --- */

/* The scanner and the grid as shaders/correspondence/pairs/scene.glsl declares them. */

/* The block of shaders/correspondence/pairs/scene.glsl. */
struct lr_pairs_pass {
    int32_t num_voxels[4], num_samples[4], range[4], list[4];
    double first_voxel[4], voxel[4];
    float scale[4];
};
_Static_assert(sizeof(struct lr_pairs_pass) == 144, "the shaders' layout");

/* Uploads the module pairs list[range[0] .. range[1] - 1]. The first value of the first of these pairs has index 0. */
struct gl_buffer *lr_pairs_upload_list(const struct lr_pairs *pairs, const lr_selection *list, const int64_t range[2]);

/* Returns the uniforms that all passes share. The caller sets the pass's range and list. */
struct lr_pairs_pass lr_pairs_uniforms(const struct lr_pairs *pairs);

/* Binds modules and masks to a pass. */
void lr_pairs_bind_scene(const struct lr_pairs *pairs, struct gl_pass *pass);
