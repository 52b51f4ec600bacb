/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Memory of the caller's on a device, as vectors. */
#include "base/log.h"
#include "base/mem.h"
#include "vector/cuda.h"

#include <stdlib.h>

static lr_status check_count(const lr_vector_params *params)
{
    if (params->count < 0) {
        return lr_error(params->log, LR_USAGE, "a vector of %lld numbers cannot be",
                        (long long)params->count);
    }
    return LR_OK;
}

static lr_vector describe(const lr_vector_params *params)
{
    return (lr_vector){
        .count = params->count, .precision = params->precision, .place = params->place};
}

/* --- CUDA --- */

lr_status lr_vector_wrap_cuda(const lr_vector_params *params, void *memory, lr_vector *vector)
{
    *vector = (lr_vector){0};
    LR_TRY(check_count(params));
    if (params->place == NULL || params->place->kind != LR_PLACE_CUDA) {
        return lr_error(params->log, LR_USAGE,
                        "memory of a CUDA device can only be a vector at a place of kind "
                        "LR_PLACE_CUDA: open one, or take lr_vector_of_floats for the host's");
    }
    lr_vector made = describe(params);
    LR_TRY(lr_vector_cuda.wrap(params, memory, &made));
    lr_place_keep(made.place);
    *vector = made;
    return LR_OK;
}

/* --- OpenGL --- */

static lr_status check_shared(const lr_vector_params *params)
{
    const lr_place *place = params->place;
    if (place != NULL && place->kind == LR_PLACE_GL && place->shares) {
        return LR_OK;
    }
    return lr_error(params->log, LR_USAGE,
                    "an OpenGL buffer can only be a vector at an OpenGL place that shares objects "
                    "with the buffer's context: open one with lr_place_params.shared");
}

static lr_status borrow(const lr_vector_params *params, GLuint name, lr_vector *vector)
{
    vector->storage = lr_alloc(1, sizeof(*vector->storage), "a vector", params->log);
    if (vector->storage == NULL) {
        return LR_FAILED;
    }
    return gl_buffer_borrow(
        params->place->ctx, name,
        &(struct gl_buffer_params){.label = params->name != NULL ? params->name : "a vector",
                                   .size_bytes = vector->count * lr_vector_size(vector)},
        &vector->storage->buffer);
}

static void wait_for(lr_vector_gl_buffer *buffer)
{
    if (buffer->after != NULL) {
        glWaitSync(buffer->after, 0, GL_TIMEOUT_IGNORED);
        glDeleteSync(buffer->after);
        buffer->after = NULL;
    }
}

lr_status lr_vector_wrap_gl(const lr_vector_params *params, lr_vector_gl_buffer *buffer,
                            lr_vector *vector)
{
    *vector = (lr_vector){0};
    LR_TRY(check_count(params));
    LR_TRY(check_shared(params));
    lr_vector made = describe(params);
    LR_TRY(gl_context_make_current(params->place->ctx));
    const lr_status status = borrow(params, buffer->buffer, &made);
    if (status == LR_OK) {
        wait_for(buffer);
    }
    gl_context_release(params->place->ctx);
    if (status != LR_OK) {
        free(made.storage);
        return gl_context_status(params->place->ctx, status);
    }
    lr_place_keep(made.place);
    *vector = made;
    return LR_OK;
}

/* --- handing over --- */

lr_status lr_place_fence(lr_place *place, void **done)
{
    *done = NULL;
    if (place == NULL || place->kind != LR_PLACE_GL) {
        return lr_error(
            place != NULL ? &place->log : NULL, LR_USAGE,
            "only OpenGL places give fences: record an event on the stream of a CUDA "
            "place (lr_place_info.cuda_stream); the host is done when its calls return");
    }
    LR_TRY(gl_context_make_current(place->ctx));
    *done = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    glFlush(); /* or the other context would wait for ever */
    const lr_status status =
        *done != NULL ? LR_OK : gl_context_check(place->ctx, "a fence for another context");
    gl_context_release(place->ctx);
    return gl_context_status(place->ctx, *done == NULL && status == LR_OK ? LR_FAILED : status);
}
