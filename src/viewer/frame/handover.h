/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Passes an image from a job's OpenGL context to the window's, which shares objects with it: two
 * textures, one shown, the other written, and fences, so that neither side waits for the other on
 * the host and no image is seen half written. */
#ifndef LR_VIEWER_HANDOVER_H
#define LR_VIEWER_HANDOVER_H

#include "gl/resource.h"

#include <lr/operator.h>

struct handover;

/* The window's thread calls it; its context is current, and outlives this.
 * errors: NULL: no memory on the device, or a context that EGL does not know of; logged. */
struct handover *handover_create(struct gl_context *ctx, const lr_grid *grid);

/* The window's thread calls it after the job has ended. NULL is allowed. */
void handover_destroy(struct handover *handover);

/* The context that the job's operator is made with: lr_operator_params.shared. */
const lr_shared_context *handover_context(const struct handover *handover);

/* The job's thread calls it: makes an image at a place that shares its context the next to show. largest: its largest
 * voxel. */
lr_status handover_write(struct handover *handover, const lr_vector *image, double largest);

/* True if a newer image is there; the window's thread asks once a frame. It does not wait: an image that is
 * still being written is taken in a later frame. */
bool handover_take(struct handover *handover);

/* The texture that is shown, its grid and its largest voxel. NULL before the first is taken. It is not written until
 * the next one has been taken. */
struct gl_texture *handover_shown(const struct handover *handover, lr_grid *grid, double *largest);

#endif
