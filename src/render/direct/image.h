/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images of the family `direct` on the device (shaders/direct/direct.glsl): 3-D textures or storage
 * buffers whose texel (q, x, y) has slices 4 q .. 4 q + 3 of a column. */
#ifndef LR_RENDER_DIRECT_IMAGE_H
#define LR_RENDER_DIRECT_IMAGE_H

#include "gl/pass.h"

#include <lr/direct.h>

/* How images of a projector lie on its device. */
struct lr_direct_layout {
    struct gl_context *ctx;
    const lr_log *log;
    int size[3];         /* of the grid */
    int quads;           /* of slices */
    int margin[3];       /* of zeros on either side: quads, columns along x and along y */
    bool buffers;        /* images with margins are storage buffers, not textures */
    bool data_buffers;   /* so are those without, which passes cannot read then */
    lr_traffic *traffic; /* where uploads and reads are counted; outlives the images */
};

/* Zero is none; one of the two is there. */
struct lr_direct_image {
    struct gl_texture *texture;
    struct gl_buffer *buffer;
    bool has_margins;
};

/* A zero image. Those without margins cannot be projected. The context is current, here and below.
 * errors: LR_FAILED. */
lr_status lr_direct_image_init(struct lr_direct_image *image, const struct lr_direct_layout *layout, const char *label,
                               bool has_margins);
void lr_direct_image_finish(struct lr_direct_image *image);
bool lr_direct_image_exists(const struct lr_direct_image *image);

/* values: [nz][ny][nx]. */
lr_status lr_direct_image_upload(const struct lr_direct_image *image, const struct lr_direct_layout *layout,
                                 const float *values);
lr_status lr_direct_image_read(const struct lr_direct_image *image, const struct lr_direct_layout *layout,
                               float *values);

/* For a pass that reads it as its source, or reads and writes it as its target. */
void lr_direct_bind_source(struct gl_pass *pass, const struct lr_direct_image *image);
void lr_direct_bind_sensitivity(struct gl_pass *pass, const struct lr_direct_image *image);
void lr_direct_bind_target(struct gl_pass *pass, const struct lr_direct_image *image);

/* What passes that write images end with. */
GLbitfield lr_direct_barriers(void);

#endif
