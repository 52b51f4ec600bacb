/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Passes an image from a job's OpenGL context to the window's context. The two contexts share objects. There are two
 * textures: one is shown while the other is written. Because of fences, no thread waits for the other one, and no
 * half-written image is shown. */
#pragma once

#include "gl/resource.h"

#include <lr/operator.h>
#include <pthread.h>

struct handover {
    lr_shared_context context; /* for the job's operator: lr_operator_params.shared */
    lr_grid grid;

    /* The window's thread reads textures[shown], which is not written until the next image has been taken. */
    struct gl_texture *textures[2];
    double largest[2]; /* largest voxel value of each texture */
    int shown;         /* index of the shown texture; the job writes the hidden one */
    bool has_shown;    /* true after the first image */

    /* private */
    pthread_mutex_t mutex; /* protects `largest`, `shown`, `has_shown` and the fences; only the window's thread
                            * changes `shown`, so this thread may read it without the mutex */
    /* Fences of the hidden texture; at most one of them exists. */
    GLsync written; /* signalled when the texture can be shown */
    GLsync read;    /* signalled when the device has finished the window's last drawing of the texture */
};

/* Called on the window's thread, with its context current. The context must outlive the handover. errors: NULL,
 * logged, if the device has no memory left or EGL does not know the context. */
struct handover *handover_create(struct gl_context *ctx, const lr_grid *grid);

/* Called on the window's thread after the job has ended. NULL is allowed. */
void handover_destroy(struct handover *handover);

/* Called on the job's thread. Makes `image` the next image to show; the image's place must share the context.
 * largest: the value of the image's largest voxel. */
lr_status handover_write(struct handover *handover, const lr_vector *image, double largest);

/* Takes a newer image and returns true if there is one. Called once a frame on the window's thread. Does not wait:
 * an image that is still being written is taken in a later frame. */
bool handover_take(struct handover *handover);
