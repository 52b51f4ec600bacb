/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/handover.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>

struct handover *handover_create(struct gl_context *ctx, const lr_grid *grid)
{
    const lr_log *log = gl_context_log(ctx);
    lr_shared_context context;
    if (!gl_context_share(&context)) {
        lr_warn(log, "this window's OpenGL was not made by EGL, so that no other context can share "
                     "with it: images of reconstructions pass through the host");
        return NULL;
    }
    struct handover *handover = lr_alloc(1, sizeof(*handover), "images handed over", log);
    if (handover == NULL) return NULL;
    pthread_mutex_init(&handover->mutex, NULL);
    handover->context = context;
    handover->grid = *grid;
    for (int k = 0; k < 2; k++) {
        handover->textures[k] = gl_texture_create(ctx, &(struct gl_texture_params){.label = "reconstruction",
                                                                                   .target = GL_TEXTURE_3D,
                                                                                   .format = GL_R32F,
                                                                                   .width = grid->size[0],
                                                                                   .height = grid->size[1],
                                                                                   .depth = grid->size[2],
                                                                                   .zero_outside = true});
        if (handover->textures[k] == NULL) {
            handover_destroy(handover);
            return NULL;
        }
    }
    glFlush(); /* the other context can only use fences of submitted commands */
    return handover;
}

void handover_destroy(struct handover *handover)
{
    if (handover == NULL) return;
    glDeleteSync(handover->written);
    glDeleteSync(handover->read);
    for (int k = 0; k < 2; k++) gl_texture_destroy(handover->textures[k]);
    pthread_mutex_destroy(&handover->mutex);
    free(handover);
}

/* While the job writes an image, `written` is NULL. The window therefore takes no image, and `shown` stays the same. An
 * image that the window has not taken is overwritten, because only the newest image is shown. */
lr_status handover_write(struct handover *handover, const lr_vector *image, double largest)
{
    pthread_mutex_lock(&handover->mutex);
    const int to = 1 - handover->shown;
    const int *size = handover->grid.size;
    lr_vector_texture copy = {
        .texture = handover->textures[to]->name,
        .size = {size[0], size[1], size[2]},
        .after = handover->written != NULL ? handover->written : handover->read,
    };
    handover->written = handover->read = NULL;
    pthread_mutex_unlock(&handover->mutex);
    LR_TRY(lr_vector_show(image, &copy));
    pthread_mutex_lock(&handover->mutex);
    handover->written = copy.done;
    handover->largest[to] = largest;
    pthread_mutex_unlock(&handover->mutex);
    return LR_OK;
}

bool handover_take(struct handover *handover)
{
    pthread_mutex_lock(&handover->mutex);
    const GLenum state = handover->written != NULL ? glClientWaitSync(handover->written, 0, 0) : GL_TIMEOUT_EXPIRED;
    const bool is_there = state == GL_ALREADY_SIGNALED || state == GL_CONDITION_SATISFIED;
    if (is_there) {
        glDeleteSync(handover->written);
        handover->written = NULL;
        if (handover->has_shown) {
            handover->read = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
            glFlush();
        }
        handover->shown = 1 - handover->shown;
        handover->has_shown = true;
    }

    pthread_mutex_unlock(&handover->mutex);
    return is_there;
}
