/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Look-up tables of one view on the device, built there: LORmap and mSRval. */
#ifndef LR_RENDER_DIRECT_TABLES_H
#define LR_RENDER_DIRECT_TABLES_H

#include "direct/backend.h"
#include "direct/tables.h"
#include "gl/pass.h"

/* What all views share. */
struct lr_direct_builder {
    struct gl_context *ctx;
    const struct lr_direct_backend_params *params;
    int margin[3];                   /* of images, in quads of slices, columns along x and along y */
    struct gl_program *map, *values; /* NULL before the first tables */
};

/* The context is current, here and below. */
void lr_direct_builder_finish(struct lr_direct_builder *builder);

/* Zero is none. */
struct lr_direct_view_tables {
    struct gl_texture *map;           /* R16UI [ny + 2 margin][nx + 2 margin] */
    struct gl_buffer *steps, *values; /* struct lr_direct_step; float [offset][row] */
    struct gl_buffer *offsets;        /* of mSR, ivec4 */
    int num_steps, num_offsets, axis;
    int num_rows; /* of mSRval: 1 where all kernels are the same, else one a kernel */
    int64_t bytes;
};

lr_status lr_direct_view_tables_init(struct lr_direct_view_tables *tables, struct lr_direct_builder *builder, int view);
void lr_direct_view_tables_finish(struct lr_direct_view_tables *tables);

#endif
