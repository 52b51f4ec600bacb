/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "gl/context_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void describe(lr_device *found, const struct gl_limits *limits)
{
    found->usable = true;
    gl_copy_text(found->renderer, sizeof(found->renderer), limits->renderer);
    gl_copy_text(found->vendor, sizeof(found->vendor), limits->vendor);
    gl_copy_text(found->version, sizeof(found->version), limits->version);
    found->software = limits->software;
    found->float_atomics = limits->nv_float_atomics;
    found->viewport_layers = limits->viewport_layer_array;
    found->max_texture_size = limits->max_texture_size;
    found->max_storage_bytes = limits->max_storage_bytes;
    found->memory_bytes = limits->memory_bytes;
}

/* What is open in ctx->egl. */
static bool start_opened(struct gl_context *ctx, char *reason, size_t capacity)
{
    bool started = egl_context_make_current(&ctx->egl, &ctx->before, reason, capacity);
    if (started) {
        started = gl_context_start(ctx, reason, capacity) == LR_OK;
        egl_context_restore(&ctx->egl, &ctx->before);
    }
    if (!started) {
        egl_context_close(&ctx->egl);
    }
    return started;
}

static bool start(struct gl_context *ctx, const struct egl_way *way, char *reason, size_t capacity)
{
    ctx->limits.software = way->software;
    return egl_context_open(&ctx->egl, way, ctx->debug, reason, capacity) &&
           start_opened(ctx, reason, capacity);
}

static struct gl_context *make(const struct gl_context_params *params)
{
    struct gl_context *ctx = lr_alloc(1, sizeof(*ctx), "an OpenGL context", params->log);
    if (ctx != NULL) {
        ctx->log = params->log;
        ctx->debug = params->debug;
    }
    return ctx;
}

bool gl_context_share(lr_shared_context *shared)
{
    struct egl_share current;
    if (!egl_context_current(&current)) {
        return false;
    }
    *shared = (lr_shared_context){current.display, current.context};
    return true;
}

static struct gl_context *create_beside(const struct gl_context_params *params)
{
    const struct egl_share share = {params->shared->display, params->shared->context};
    char reason[256] = "no OpenGL";
    struct gl_context *ctx = make(params);
    if (ctx == NULL) {
        return NULL;
    }
    ctx->is_shared = true;
    if (!egl_context_open_beside(&ctx->egl, &share, ctx->debug, reason, sizeof(reason)) ||
        !start_opened(ctx, reason, sizeof(reason))) {
        lr_error(params->log, LR_NO_DEVICE,
                 "no OpenGL context can be made that shares objects with the one given: %s",
                 reason);
        free(ctx);
        return NULL;
    }
    return ctx;
}

struct gl_context *gl_context_try(const struct egl_way *way, const struct gl_context_params *params,
                                  lr_device *found)
{
    *found = (lr_device){.software = way->software};
    gl_copy_text(found->way, sizeof(found->way), way->name);
    struct gl_context *ctx = make(params);
    if (ctx == NULL) {
        gl_copy_text(found->reason, sizeof(found->reason), "no memory");
        return NULL;
    }
    if (!start(ctx, way, found->reason, sizeof(found->reason))) {
        free(ctx);
        return NULL;
    }
    describe(found, &ctx->limits);
    return ctx;
}

/* ---- choosing ---- */

static void append(char *list, size_t capacity, const char *text)
{
    const size_t length = strlen(list);
    snprintf(list + length, capacity - length, "%s%s", length > 0 ? "; " : "", text);
}

static void append_found(char *list, size_t capacity, const lr_device *found, int number)
{
    char item[512];
    if (found->usable) {
        snprintf(item, sizeof(item), "%d = %s (%s)", number, found->renderer, found->way);
    } else {
        snprintf(item, sizeof(item), "%s: %s", found->way, found->reason);
    }
    append(list, capacity, item);
}

static void report_none(const lr_log *log, const char *refusals)
{
    lr_error(log, LR_NO_DEVICE,
             "no OpenGL 4.5 device can be used: install a driver with EGL (software rendering on "
             "Debian: apt install libegl1 libgl1-mesa-dri; NVIDIA: the driver with its EGL "
             "library, libegl-nvidia0, and in a container NVIDIA_DRIVER_CAPABILITIES=all); what "
             "was tried: %s",
             refusals);
}

struct gl_context *gl_context_create(const struct gl_context_params *params)
{
    if (params->shared != NULL) {
        return create_beside(params);
    }
    struct egl_way ways[EGL_WAY_MAX];
    const int num_ways = egl_ways_find(ways);
    char usable[600] = "", refusals[600] = "";
    int num_usable = 0;
    for (int k = 0; k < num_ways; k++) {
        lr_device found;
        struct gl_context *ctx = gl_context_try(&ways[k], params, &found);
        if (ctx == NULL) {
            lr_debug(params->log, "%s cannot be used: %s", found.way, found.reason);
            append_found(refusals, sizeof(refusals), &found, -1);
            continue;
        }
        if (num_usable == params->device) {
            lr_debug(params->log, "OpenGL on %s by %s", found.renderer, found.way);
            return ctx;
        }
        append_found(usable, sizeof(usable), &found, num_usable++);
        gl_context_destroy(ctx);
    }
    if (num_usable == 0) {
        report_none(params->log, refusals);
    } else {
        lr_error(params->log, LR_USAGE, "device %d does not exist: choose one of %s",
                 params->device, usable);
    }
    return NULL;
}
