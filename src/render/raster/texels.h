/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Numbers of a vector, on the host or at the backend's place, in a texture that can be drawn on: the LOR image of
 * the cluster paper, section III, and voxels. Number k stands at (k mod width, k / width). */
#ifndef LR_RENDER_TEXELS_H
#define LR_RENDER_TEXELS_H

#include "gl/resource.h"

#include <lr/vector.h>

struct lr_texels {
    struct gl_target *target; /* R32F; NULL = none */
    int64_t count;
};

/* Zeros; target NULL on error, logged. */
struct lr_texels lr_texels_create(struct gl_context *ctx, const char *label, int64_t count);
/* So many zeros in *texels, in the texture that is there if it has as many. */
lr_status lr_texels_renew(struct lr_texels *texels, struct gl_context *ctx, const char *label, int64_t count);
void lr_texels_destroy(struct lr_texels *texels);

/* The most numbers that one texture can hold within `bytes` (0: as the driver allows). */
int64_t lr_texels_capacity(const struct gl_context *ctx, int64_t bytes);

/* From and to a vector of `count` floats; at the place nothing passes through the host. */
lr_status lr_texels_put(struct lr_texels *texels, const lr_vector *from);
lr_status lr_texels_get(const struct lr_texels *texels, lr_vector *to);

#endif
