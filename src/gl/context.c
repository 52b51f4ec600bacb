/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/context.h"

#include "base/log.h"
#include "base/mem.h"
#include "gl/context_private.h"
#include "gl/program.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Threads of a driver's compiler (GL_KHR_parallel_shader_compile). */
#define AS_MANY_AS_IT_LIKES 0xFFFFFFFFu

/* ---- starting ---- */

/* GLEW's table of functions is the process's, so its guard is too. */
static pthread_mutex_t table_guard = PTHREAD_MUTEX_INITIALIZER;

/* GLEW asks for a GLX display after everything else is loaded; there is none here. Its table serves
 * every context once it is filled. */
static bool load_functions(void)
{
    pthread_mutex_lock(&table_guard);
    bool loaded = GLEW_VERSION_4_5 && glCreateTextures != NULL;
    if (!loaded) {
        const GLenum result = glewInit();
        loaded = result == GLEW_OK || result == GLEW_ERROR_NO_GLX_DISPLAY;
    }
    pthread_mutex_unlock(&table_guard);
    return loaded;
}

lr_status gl_context_start(struct gl_context *ctx, char *reason, size_t capacity)
{
    if (!load_functions()) {
        snprintf(reason, capacity, "GLEW cannot load the OpenGL functions");
        return LR_NO_DEVICE;
    }
    gl_context_drop_errors(ctx); /* of whoever had it before, and of loading */
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
    if (!ctx->adopted || ctx->debug) gl_debug_install(ctx);
    ctx->trace = gl_trace_open(ctx);
    return LR_OK;
}

struct gl_context *gl_context_adopt(const struct gl_context_params *params)
{
    struct gl_context *ctx = lr_alloc(1, sizeof(*ctx), "an OpenGL context", params->log);
    if (ctx == NULL) return NULL;
    ctx->log = params->log;
    ctx->debug = params->debug;
    ctx->adopted = true;
    char reason[256] = "";
    if (gl_context_start(ctx, reason, sizeof(reason)) != LR_OK) {
        lr_error(ctx->log, LR_NO_DEVICE, "the window's OpenGL cannot be used: %s", reason);
        free(ctx);
        return NULL;
    }
    return ctx;
}

/* ---- use ---- */

/* Its own; the context is current. */
static void delete_objects(struct gl_context *ctx)
{
    gl_trace_close(ctx->trace);
    glDeleteVertexArrays(1, &ctx->vertex_array);
    gl_program_destroy(ctx->fill);
    ctx->fill = NULL;
    gl_stream_finish(ctx);
    glDeleteBuffers(1, &ctx->staging_buffer);
    gl_pool_empty(&ctx->pool);
}

void gl_context_destroy(struct gl_context *ctx)
{
    if (ctx == NULL) return;
    if (ctx->adopted) {
        delete_objects(ctx);
        if (ctx->debug) gl_debug_remove(ctx);
    } else {
        const bool has_objects = ctx->is_shared || ctx->fill != NULL || ctx->trace != NULL;
        if (has_objects && gl_context_make_current_to_free(ctx)) delete_objects(ctx);
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
    if (ctx->times_current == 0) {
        char reason[256] = "";
        if (!ctx->adopted && !egl_context_make_current(&ctx->egl, &ctx->before, reason, sizeof(reason))) {
            return lr_error(log, LR_NO_DEVICE, "the OpenGL context on %s cannot be made current: %s",
                            ctx->limits.renderer, reason);
        }
        gl_pass_baseline(ctx);
        ctx->told_loss = false;
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
    return make_current(ctx, ctx->is_lost ? NULL : ctx->log) == LR_OK;
}

void gl_context_release(struct gl_context *ctx)
{
    if (ctx->times_current == 0 || --ctx->times_current > 0 || ctx->adopted) return;
    if (!egl_context_restore(&ctx->egl, &ctx->before)) {
        lr_warn(ctx->log, "the OpenGL context that was current before cannot be made current "
                          "again: make it current before drawing with it");
    }
}

uint64_t gl_context_new_number(struct gl_context *ctx)
{
    return ++ctx->last_number;
}

const lr_log *gl_context_log(const struct gl_context *ctx)
{
    return ctx->log;
}

lr_status gl_context_status(const struct gl_context *ctx, lr_status status)
{
    return status == LR_FAILED && ctx->is_lost ? LR_NO_DEVICE : status;
}

bool gl_context_saw_error(const struct gl_context *ctx)
{
    return ctx->saw_error;
}
