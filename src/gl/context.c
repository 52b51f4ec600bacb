/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/context.h"

#include "base/log.h"
#include "base/mem.h"
#include "gl/context_private.h"
#include "gl/egl.h"
#include "gl/program.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An argument for GL_KHR_parallel_shader_compile: the driver chooses how many threads compile. */
#define AS_MANY_AS_IT_LIKES 0xFFFFFFFFu

/* ---- starting ---- */

/* A lock for GLEW's table of functions, which all threads of the process share. */
static pthread_mutex_t table_guard = PTHREAD_MUTEX_INITIALIZER;

/* Writes a message of the driver to the log. Hints about performance are only for developers, even if their severity is
 * high. */
static void GLAPIENTRY receive(GLenum source, GLenum type, GLuint id, GLenum severity, GLsizei length,
                               const GLchar *text, const void *user)
{
    (void)source;
    struct gl_context *ctx = (struct gl_context *)user;
    int end = length < 0 ? (int)strlen(text) : (int)length;
    while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == '\0')) end--;

    const char *kind = type == GL_DEBUG_TYPE_ERROR                 ? "error"
                       : type == GL_DEBUG_TYPE_DEPRECATED_BEHAVIOR ? "deprecated use"
                       : type == GL_DEBUG_TYPE_UNDEFINED_BEHAVIOR  ? "undefined behaviour"
                       : type == GL_DEBUG_TYPE_PORTABILITY         ? "portability"
                       : type == GL_DEBUG_TYPE_PERFORMANCE         ? "performance"
                                                                   : "message";
    if (type == GL_DEBUG_TYPE_ERROR || severity == GL_DEBUG_SEVERITY_HIGH) {
        ctx->saw_error = true;
        lr_error(ctx->log, LR_FAILED, "OpenGL %s %u: %.*s", kind, id, end, text);
    } else if (severity == GL_DEBUG_SEVERITY_MEDIUM && type != GL_DEBUG_TYPE_PERFORMANCE) {
        lr_warn(ctx->log, "OpenGL %s %u: %.*s", kind, id, end, text);
    } else {
        lr_debug(ctx->log, "OpenGL %s %u: %.*s", kind, id, end, text);
    }
}

/* Loads OpenGL's functions, reads the limits, and installs the debug callback in the current context. Errors are not
 * logged; `reason` receives the cause, without a full stop. */
static lr_status context_start(struct gl_context *ctx, char *reason, size_t capacity)
{
    /* GLEW loads GLX after all OpenGL functions. There is no GLX here (glew_proc.c), so the error about GLX is ignored.
     * All contexts use GLEW's table once it is filled. */
    pthread_mutex_lock(&table_guard);
    bool loaded = GLEW_VERSION_4_5 && glCreateTextures != NULL;
    if (!loaded) {
        const GLenum result = glewInit();
        loaded = result == GLEW_OK || result == GLEW_ERROR_GLX_VERSION_11_ONLY;
    }
    pthread_mutex_unlock(&table_guard);

    if (!loaded) {
        snprintf(reason, capacity, "GLEW cannot load the OpenGL functions");
        return LR_NO_DEVICE;
    }
    gl_context_drop_errors(ctx); /* GLEW, or earlier users of the context, can have left errors */
    const int version = 10 * gl_integer(GL_MAJOR_VERSION) + gl_integer(GL_MINOR_VERSION);
    if (version < 45 || glCreateTextures == NULL) {
        const char *is = (const char *)glGetString(GL_VERSION);
        snprintf(reason, capacity, "OpenGL 4.5 is needed, and this is %s",
                 is != NULL ? is : "one that does not tell its version");
        return LR_NO_DEVICE;
    }
    gl_limits_read(&ctx->limits);
    const GLenum error = glGetError();
    gl_context_drop_errors(ctx);
    if (error == GL_OUT_OF_MEMORY || error == GL_CONTEXT_LOST) {
        snprintf(reason, capacity, "it reports %s when asked for its limits", gl_error_name(error));
        return LR_NO_DEVICE;
    }
    if (ctx->limits.parallel_compile) glMaxShaderCompilerThreadsKHR(AS_MANY_AS_IT_LIKES);
    if (!ctx->adopted || ctx->debug) { /* the driver's messages go to the log */
        glEnable(GL_DEBUG_OUTPUT);
        /* The driver sends messages in the thread that called OpenGL, because only this thread may call the log. */
        glEnable(GL_DEBUG_OUTPUT_SYNCHRONOUS);
        glDebugMessageControl(GL_DONT_CARE, GL_DONT_CARE, GL_DONT_CARE, 0, NULL, GL_TRUE);
        glDebugMessageControl(GL_DONT_CARE, GL_DONT_CARE, GL_DEBUG_SEVERITY_NOTIFICATION, 0, NULL, GL_FALSE);
        /* Compile errors are excluded, because program.c reports them with file and line. */
        glDebugMessageControl(GL_DEBUG_SOURCE_SHADER_COMPILER, GL_DONT_CARE, GL_DONT_CARE, 0, NULL, GL_FALSE);
        glDebugMessageCallback(receive, ctx);
    }
    return LR_OK;
}

static struct gl_context *make(const struct gl_context_params *params)
{
    struct gl_context *ctx = lr_alloc(1, sizeof(*ctx), "an OpenGL context", params->log);
    if (ctx != NULL) {
        ctx->log = params->log;
        ctx->debug = params->debug;
        (void)lr_driver_claim(&ctx->owner, "OpenGL", ctx->log); /* cannot fail, because the context has no owner yet */
    }
    return ctx;
}

struct gl_context *gl_context_adopt(const struct gl_context_params *params)
{
    struct gl_context *ctx = make(params);
    if (ctx == NULL) return NULL;
    ctx->adopted = true;
    char reason[256] = "";
    if (context_start(ctx, reason, sizeof(reason)) != LR_OK) {
        lr_error(ctx->log, LR_NO_DEVICE, "the window's OpenGL cannot be used: %s", reason);
        free(ctx);
        return NULL;
    }
    return ctx;
}

/* ---- use ---- */

void gl_context_destroy(struct gl_context *ctx)
{
    if (ctx == NULL) return;
    if (!lr_driver_is_own(&ctx->owner)) {
        free(ctx);
        return;
    }
    const bool has_objects = ctx->adopted || ctx->is_shared || ctx->fill != NULL;
    if (has_objects && (ctx->adopted || gl_context_make_current_to_free(ctx))) {
        glDeleteVertexArrays(1, &ctx->vertex_array);
        gl_program_destroy(ctx->fill);
        gl_stream_finish(ctx);
        glDeleteBuffers(1, &ctx->staging_buffer);
        gl_pool_empty(&ctx->pool);
    }
    if (ctx->adopted) {
        if (ctx->debug) glDebugMessageCallback(NULL, NULL);
    } else {
        if (ctx->times_current > 0) {
            ctx->times_current = 1;
            gl_context_release(ctx);
        }
        egl_context_close(&ctx->egl);
    }
    free(ctx);
}

static lr_status make_current(struct gl_context *ctx, const lr_log *log)
{
    LR_TRY(lr_driver_check(&ctx->owner, "OpenGL", log));
    if (ctx->times_current == 0) {
        char reason[256] = "";
        if (!ctx->adopted && !egl_context_make_current(&ctx->egl, &ctx->before, reason, sizeof(reason))) {
            return lr_error(log, LR_NO_DEVICE, "the OpenGL context on %s cannot be made current: %s",
                            ctx->limits.renderer, reason);
        }
        gl_pass_baseline(ctx);
        ctx->has_logged_loss = false;
    }
    ctx->times_current++;
    return LR_OK;
}

lr_status gl_context_make_current(struct gl_context *ctx)
{
    return make_current(ctx, ctx->log);
}

bool gl_context_make_current_to_free(struct gl_context *ctx)
{
    return lr_driver_is_own(&ctx->owner) && make_current(ctx, ctx->is_lost ? NULL : ctx->log) == LR_OK;
}

void gl_context_release(struct gl_context *ctx)
{
    if (!lr_driver_is_own(&ctx->owner)) return;
    if (ctx->times_current == 0 || --ctx->times_current > 0 || ctx->adopted) return;
    if (!egl_context_restore(&ctx->egl, &ctx->before)) {
        lr_warn(ctx->log, "the OpenGL context that was current before cannot be made current "
                          "again: make it current before drawing with it");
    }
}

/* ---- creating ---- */

/* Claims EGL for this process. If a process has asked EGL for devices, EGL does not work in its children after
 * fork(). */
static lr_status claim_egl(const lr_log *log)
{
    static lr_driver_owner owner;
    return lr_driver_claim(&owner, "OpenGL", log);
}

/* Starts the context that has been opened in ctx->egl. */
static bool start_opened(struct gl_context *ctx, char *reason, size_t capacity)
{
    bool started = egl_context_make_current(&ctx->egl, &ctx->before, reason, capacity);
    if (started) {
        started = context_start(ctx, reason, capacity) == LR_OK;
        egl_context_restore(&ctx->egl, &ctx->before);
    }
    if (!started) egl_context_close(&ctx->egl);
    return started;
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
    (*ctx)->limits.software = way->software;
    if (!egl_context_open(&(*ctx)->egl, way, params->debug, found->reason, sizeof(found->reason)) ||
        !start_opened(*ctx, found->reason, sizeof(found->reason))) {
        free(*ctx);
        *ctx = NULL;
        return LR_NO_DEVICE;
    }
    const struct gl_limits *limits = &(*ctx)->limits;
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
    return LR_OK;
}

static void append_found(char *list, size_t capacity, const lr_device *found, int number)
{
    char item[512];
    if (found->usable)
        snprintf(item, sizeof(item), "%d = %s (%s)", number, found->renderer, found->way);
    else
        snprintf(item, sizeof(item), "%s: %s", found->way, found->reason);
    const size_t length = strlen(list);
    snprintf(list + length, capacity - length, "%s%s", length > 0 ? "; " : "", item);
}

/* Makes the requested context. *ctx is NULL after an error. */
static lr_status create(const struct gl_context_params *params, struct gl_context **ctx)
{
    struct egl_way ways[EGL_WAY_MAX];
    char usable[600] = "", refusals[600] = ""; /* usable: devices that work; refusals: devices that do not work, with
                                                  reasons */
    int num_usable = 0;
    *ctx = NULL;
    LR_TRY(claim_egl(params->log));
    if (params->shared != NULL) {
        char reason[256] = "no OpenGL";
        *ctx = make(params);
        if (*ctx == NULL) return LR_FAILED;
        (*ctx)->is_shared = true;
        if (!egl_context_open_beside(&(*ctx)->egl, params->shared, params->debug, reason, sizeof(reason)) ||
            !start_opened(*ctx, reason, sizeof(reason))) {
            free(*ctx);
            *ctx = NULL;
            return lr_error(params->log, LR_NO_DEVICE,
                            "no OpenGL context can be made that shares objects with the one given: %s", reason);
        }
        return LR_OK;
    }
    const int num_ways = egl_ways_find(ways);
    for (int k = 0; k < num_ways; k++) {
        lr_device found;
        const lr_status status = gl_context_try(&ways[k], params, &found, ctx);
        if (status == LR_NO_DEVICE) {
            lr_debug(params->log, "%s cannot be used: %s", found.way, found.reason);
            append_found(refusals, sizeof(refusals), &found, -1);
            continue;
        }
        LR_TRY(status);
        if (num_usable == params->device) {
            lr_debug(params->log, "OpenGL on %s by %s", found.renderer, found.way);
            return LR_OK;
        }
        append_found(usable, sizeof(usable), &found, num_usable++);
        gl_context_destroy(*ctx);
        *ctx = NULL;
    }
    if (num_usable > 0)
        return lr_error(params->log, LR_USAGE, "device %d does not exist: choose one of %s", params->device, usable);
    return lr_error(params->log, LR_NO_DEVICE,
                    "no OpenGL 4.5 device can be used: " GL_CONTEXT_REMEDY "; what was tried: %s", refusals);
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

int gl_device_list(lr_device *devices, int capacity, const lr_log *log)
{
    const struct gl_context_params params = {.log = log};
    struct egl_way ways[EGL_WAY_MAX];
    if (claim_egl(log) != LR_OK) return 0;
    const int count = egl_ways_find(ways);
    int num_usable = 0;
    for (int k = 0; k < count && k < capacity; k++) {
        struct gl_context *ctx;
        (void)gl_context_try(&ways[k], &params, &devices[k], &ctx);
        gl_context_destroy(ctx);
        num_usable += devices[k].usable;
    }
    /* If no device is usable, the caller reports this reason, so a warning would only repeat it. */
    const struct egl_way *first = &ways[0];
    if (first->kind == EGL_WAY_UNLISTED && num_usable > 0)
        lr_warn(log, "devices may be there that OpenGL is not tried on: %s", first->reason);
    return count;
}
