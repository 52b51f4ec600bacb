/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Places of vectors, and vectors in device memory that the caller owns. */
#include "device/place.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "device/kinds.h"
#include "plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>

static void pass_on(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const lr_place *place = user;
    if (place->to != NULL && place->to->write != NULL) place->to->write(place->to->user, level, status, sentence);
}

lr_status lr_place_open_on(const lr_place_params *params, lr_place **place)
{
    *place = NULL;
    if (params->kind != LR_PLACE_HOST && params->kind != LR_PLACE_GL && params->kind != LR_PLACE_CUDA)
        return lr_error(params->log, LR_USAGE, "vectors have no place of kind %d", (int)params->kind);
    if (params->threads < 0 || params->device < 0) {
        return lr_error(params->log, LR_USAGE, "%d threads, device %d: neither may be negative; 0 is the default",
                        params->threads, params->device);
    }
    if (params->cuda_stream != NULL && params->kind != LR_PLACE_CUDA)
        return lr_error(params->log, LR_USAGE, "a CUDA stream is for places of kind LR_PLACE_CUDA alone");

    lr_place *opened = lr_alloc(1, sizeof(*opened), "a place for vectors", params->log);
    if (opened == NULL) return LR_FAILED;
    atomic_init(&opened->holders, 1);
    opened->kind = params->kind;
    opened->threads = params->threads > 0 ? params->threads : lr_num_processors();
    opened->log = (lr_log){.write = pass_on, .user = opened};
    opened->to = params->log;
    lr_status status = LR_OK;
    if (params->kind == LR_PLACE_HOST) {
        snprintf(opened->device, sizeof(opened->device), "CPU, %d thread%s", opened->threads,
                 opened->threads == 1 ? "" : "s");
    } else {
        /* The plugin of the place's kind opens it. */
        if (params->kind == LR_PLACE_GL) {
            const struct lr_gl_plugin *gl = lr_plugin_gl(&opened->log);
            opened->fns = gl != NULL ? gl->places : NULL;
        } else {
            const struct lr_cuda_plugin *cuda = lr_plugin_cuda(&opened->log);
            opened->fns = cuda != NULL ? cuda->places : NULL;
        }
        status = opened->fns != NULL ? opened->fns->open(params, opened) : LR_NO_DEVICE;
    }
    if (status != LR_OK) {
        free(opened);
        return status;
    }
    *place = opened;
    return LR_OK;
}

lr_place *lr_place_open_sized(size_t given_bytes, const lr_place_params *given)
{
    LR_TAKE(lr_place_params, params, given, given_bytes);
    lr_place *place;
    (void)lr_place_open_on(params, &place);
    return place;
}

lr_place *lr_place_keep(lr_place *place)
{
    if (place != NULL) atomic_fetch_add(&place->holders, 1);
    return place;
}

void lr_place_close(lr_place *place)
{
    if (place == NULL || atomic_fetch_sub(&place->holders, 1) > 1) return;
    if (place->fns != NULL) place->fns->close(place);
    free(place);
}

void lr_place_silence(lr_place *place)
{
    if (place != NULL) place->to = NULL;
}

lr_status lr_place_hold(lr_place *place)
{
    return place != NULL && place->fns != NULL && place->fns->hold != NULL ? place->fns->hold(place) : LR_OK;
}

void lr_place_release(lr_place *place)
{
    if (place != NULL && place->fns != NULL && place->fns->release != NULL) place->fns->release(place);
}

int lr_place_threads(const lr_place *place)
{
    return place != NULL ? place->threads : lr_num_processors();
}

lr_place_info lr_place_get_info(const lr_place *place)
{
    if (place == NULL) return (lr_place_info){.kind = LR_PLACE_HOST, .device = "CPU, all processors"};
    return (lr_place_info){.kind = place->kind,
                           .device = place->device,
                           .memory_bytes = place->memory_bytes,
                           .traffic = place->traffic,
                           .cuda_stream = place->cuda_stream};
}

/* --- the caller's memory on a device --- */

/* refusal: reason why the place cannot use this kind of memory; NULL = the place can use it. */
static lr_status wrap(const lr_vector_params *params, void *memory, const char *refusal, lr_vector *vector)
{
    *vector = (lr_vector){0};
    if (params->count < 0)
        return lr_error(params->log, LR_USAGE, "a vector of %lld numbers cannot be", (long long)params->count);
    if (refusal != NULL) return lr_error(params->log, LR_USAGE, "%s", refusal);
    lr_vector made = {.count = params->count, .precision = params->precision, .place = params->place};
    LR_TRY(params->place->fns->wrap(params, memory, &made));
    lr_place_keep(made.place);
    *vector = made;
    return LR_OK;
}

lr_status lr_vector_wrap_cuda_sized(size_t given_bytes, const lr_vector_params *given, void *memory, lr_vector *vector)
{
    LR_TAKE(lr_vector_params, params, given, given_bytes);
    const bool fits = params->place != NULL && params->place->kind == LR_PLACE_CUDA;
    return wrap(params, memory,
                fits ? NULL
                     : "memory of a CUDA device can only be a vector at a place of kind "
                       "LR_PLACE_CUDA: open one, or take lr_vector_of_floats for the host's",
                vector);
}

lr_status lr_vector_wrap_gl_sized(size_t given_bytes, const lr_vector_params *given, lr_vector_gl_buffer *buffer,
                                  lr_vector *vector)
{
    LR_TAKE(lr_vector_params, params, given, given_bytes);
    const lr_place *place = params->place;
    const bool fits = place != NULL && place->kind == LR_PLACE_GL && place->shares;
    return wrap(params, buffer,
                fits ? NULL
                     : "an OpenGL buffer can only be a vector at an OpenGL place that shares objects "
                       "with the buffer's context: open one with lr_place_params.shared",
                vector);
}

/* --- fences and holds --- */

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
