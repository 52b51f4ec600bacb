/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Passes an image from a job's OpenGL context to the window's context. The two contexts share objects. There are two
 * textures: one is shown while the other is written. Because of fences, no thread waits for the other one, and no
 * half-written image is shown. */
#ifndef LR_VIEWER_HANDOVER_H
#define LR_VIEWER_HANDOVER_H

#include "gl/resource.h"

#include <lr/operator.h>

struct handover;

/* Called on the window's thread, with its context current. The context must outlive the handover. errors: NULL,
 * logged, if the device has no memory left or EGL does not know the context. */
struct handover *handover_create(struct gl_context *ctx, const lr_grid *grid);

/* Called on the window's thread after the job has ended. NULL is allowed. */
void handover_destroy(struct handover *handover);

/* The shared context for the job's operator: lr_operator_params.shared. */
const lr_shared_context *handover_context(const struct handover *handover);

/* Called on the job's thread. Makes `image` the next image to show; the image's place must share the context.
 * largest: the value of the image's largest voxel. */
lr_status handover_write(struct handover *handover, const lr_vector *image, double largest);

/* Takes a newer image and returns true if there is one. Called once a frame on the window's thread. Does not wait:
 * an image that is still being written is taken in a later frame. */
bool handover_take(struct handover *handover);

/* The shown texture, its grid and the value of its largest voxel. NULL before the first image is taken. The texture
 * is not written until the next image has been taken. */
struct gl_texture *handover_shown(const struct handover *handover, lr_grid *grid, double *largest);

#endif
