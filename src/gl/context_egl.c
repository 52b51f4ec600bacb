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
    if (!started) egl_context_close(&ctx->egl);
    return started;
}

static bool start(struct gl_context *ctx, const struct egl_way *way, char *reason, size_t capacity)
{
    ctx->limits.software = way->software;
    return egl_context_open(&ctx->egl, way, ctx->debug, reason, capacity) && start_opened(ctx, reason, capacity);
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
    if (!egl_context_current(&current)) return false;
    *shared = (lr_shared_context){current.display, current.context};
    return true;
}

static lr_status create_beside(const struct gl_context_params *params, struct gl_context **ctx)
{
    const struct egl_share share = {params->shared->display, params->shared->context};
    char reason[256] = "no OpenGL";
    *ctx = make(params);
    if (*ctx == NULL) return LR_FAILED;
    (*ctx)->is_shared = true;
    if (!egl_context_open_beside(&(*ctx)->egl, &share, params->debug, reason, sizeof(reason)) ||
        !start_opened(*ctx, reason, sizeof(reason))) {
        free(*ctx);
        *ctx = NULL;
        return lr_error(params->log, LR_NO_DEVICE,
                        "no OpenGL context can be made that shares objects with the one given: %s", reason);
    }
    return LR_OK;
}

lr_status gl_context_try(const struct egl_way *way, const struct gl_context_params *params, lr_device *found,
                         struct gl_context **ctx)
{
    *found = (lr_device){.software = way->software};
    gl_copy_text(found->way, sizeof(found->way), way->name);
    *ctx = make(params);
    if (*ctx == NULL) {
        gl_copy_text(found->reason, sizeof(found->reason), "no memory");
        return LR_FAILED;
    }
    if (!start(*ctx, way, found->reason, sizeof(found->reason))) {
        free(*ctx);
        *ctx = NULL;
        return LR_NO_DEVICE;
    }
    describe(found, &(*ctx)->limits);
    return LR_OK;
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
    if (found->usable)
        snprintf(item, sizeof(item), "%d = %s (%s)", number, found->renderer, found->way);
    else
        snprintf(item, sizeof(item), "%s: %s", found->way, found->reason);
    append(list, capacity, item);
}

/* What was tried, for the sentence on why none of it will do. */
struct tried {
    char usable[600], refusals[600];
    int num_usable;
};

static lr_status report_none(const struct gl_context_params *params, const struct tried *tried)
{
    if (tried->num_usable > 0) {
        return lr_error(params->log, LR_USAGE, "device %d does not exist: choose one of %s", params->device,
                        tried->usable);
    }
    return lr_error(params->log, LR_NO_DEVICE,
                    "no OpenGL 4.5 device can be used: " GL_CONTEXT_REMEDY "; what was tried: %s", tried->refusals);
}

/* The one asked for, into *ctx, or NULL there while others are left to try. */
static lr_status try_next(const struct egl_way *way, const struct gl_context_params *params, struct tried *tried,
                          struct gl_context **ctx)
{
    lr_device found;
    const lr_status status = gl_context_try(way, params, &found, ctx);
    if (status == LR_NO_DEVICE) {
        lr_debug(params->log, "%s cannot be used: %s", found.way, found.reason);
        append_found(tried->refusals, sizeof(tried->refusals), &found, -1);
        return LR_OK;
    }
    if (status == LR_OK && tried->num_usable == params->device) {
        lr_debug(params->log, "OpenGL on %s by %s", found.renderer, found.way);
    } else if (status == LR_OK) {
        append_found(tried->usable, sizeof(tried->usable), &found, tried->num_usable++);
        gl_context_destroy(*ctx);
        *ctx = NULL;
    }
    return status;
}

static lr_status create(const struct gl_context_params *params, struct gl_context **ctx)
{
    struct egl_way ways[EGL_WAY_MAX];
    struct tried tried = {.num_usable = 0};
    *ctx = NULL;
    if (params->shared != NULL) return create_beside(params, ctx);
    const int num_ways = egl_ways_find(ways);
    for (int k = 0; *ctx == NULL && k < num_ways; k++) LR_TRY(try_next(&ways[k], params, &tried, ctx));
    return *ctx != NULL ? LR_OK : report_none(params, &tried);
}

struct gl_context *gl_context_create(const struct gl_context_params *params)
{
    struct gl_context *ctx;
    (void)create(params, &ctx);
    return ctx;
}

lr_status gl_context_open(const struct gl_context_params *params, struct gl_context **ctx)
{
    lr_status status = create(params, ctx);
    status = status == LR_OK ? gl_context_make_current(*ctx) : status;
    if (status != LR_OK) {
        gl_context_destroy(*ctx);
        *ctx = NULL;
    }
    return status;
}
