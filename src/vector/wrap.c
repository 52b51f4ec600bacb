/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Memory of the caller's on a device, as vectors. */
#include "base/log.h"
#include "vector/kinds.h"

static lr_status check_count(const lr_vector_params *params)
{
    if (params->count < 0)
        return lr_error(params->log, LR_USAGE, "a vector of %lld numbers cannot be", (long long)params->count);
    return LR_OK;
}

static lr_status wrap(const lr_vector_params *params, void *memory, lr_vector *vector)
{
    lr_vector made = {.count = params->count, .precision = params->precision, .place = params->place};
    LR_TRY(params->place->fns->wrap(params, memory, &made));
    lr_place_keep(made.place);
    *vector = made;
    return LR_OK;
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
    return wrap(params, memory, vector);
}

/* --- OpenGL --- */

static lr_status check_shared(const lr_vector_params *params)
{
    const lr_place *place = params->place;
    if (place != NULL && place->kind == LR_PLACE_GL && place->shares) return LR_OK;
    return lr_error(params->log, LR_USAGE,
                    "an OpenGL buffer can only be a vector at an OpenGL place that shares objects "
                    "with the buffer's context: open one with lr_place_params.shared");
}

lr_status lr_vector_wrap_gl(const lr_vector_params *params, lr_vector_gl_buffer *buffer, lr_vector *vector)
{
    *vector = (lr_vector){0};
    LR_TRY(check_count(params));
    LR_TRY(check_shared(params));
    return wrap(params, buffer, vector);
}

/* --- handing over --- */

lr_status lr_place_fence(lr_place *place, void **done)
{
    *done = NULL;
    if (place == NULL || place->kind != LR_PLACE_GL) {
        return lr_error(place != NULL ? &place->log : NULL, LR_USAGE,
                        "only OpenGL places give fences: record an event on the stream of a CUDA "
                        "place (lr_place_info.cuda_stream); the host is done when its calls return");
    }
    return place->fns->fence(place, done);
}
