/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Forward projection of correspondence images: cluster paper, section III. */
#ifndef LR_RENDER_FORWARD_H
#define LR_RENDER_FORWARD_H

#include "render/raster/correspondence.h"

/* The values of a window of LORs, in a texture: LOR k of the window at (k mod width, k / width). */
struct lr_lor_texture {
    struct gl_target *target; /* R32F */
    int64_t num_lors;
};

/* A zeroed texture for that many LORs; target NULL on error. */
struct lr_lor_texture lr_lor_texture_create(struct gl_context *ctx, int64_t num_lors);
void lr_lor_texture_destroy(struct lr_lor_texture *lors);

/* The most LORs that one texture can hold within `bytes` (0: as the driver allows). */
int64_t lr_lor_texture_capacity(const struct gl_context *ctx, int64_t bytes);

/* values: [num_lors]. */
lr_status lr_lor_texture_upload(struct lr_lor_texture *lors, const float *values);
lr_status lr_lor_texture_read(const struct lr_lor_texture *lors, float *values);

/* Sums of a window: a texture has them as floats, and after many terms for each LOR they go on to doubles, as a
 * float loses more and more of what is added to it. What is set in *sums at first is the texture; finish them
 * in any case. */
struct lr_texture_sums {
    struct lr_lor_texture lors;
    double *sums; /* owned [num_lors]; NULL = none went on yet */
    float *read;  /* owned [num_lors], alike */
    int64_t rays; /* that the texture has terms of, at most */
    const lr_log *log;
};

/* After a batch of so many rays. errors: LR_FAILED without memory, or the device's. */
lr_status lr_texture_sums_take(struct lr_texture_sums *sums, int64_t rays);

/* values: [num_lors]. */
lr_status lr_texture_sums_read(struct lr_texture_sums *sums, float *values);
void lr_texture_sums_finish(struct lr_texture_sums *sums);

struct lr_scatter {
    struct lr_scene *scene;
    const struct lr_plan *plan;
    bool by_points; /* as the paper has it, added in a fixed order; else by atomic additions */
    struct gl_program *program;
};

/* What is set in *scatter says how. */
lr_status lr_scatter_init(struct lr_scatter *scatter);
void lr_scatter_finish(struct lr_scatter *scatter);

/* Adds a batch's images, as they stand in the atlas, to the LORs of the window. */
lr_status lr_scatter_run(struct lr_scatter *scatter, const struct lr_correspondence *images,
                         const struct lr_batch *batch, struct lr_lor_texture *lors);

#endif
