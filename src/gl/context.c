/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/context.h"

#include "base/log.h"
#include "base/mem.h"
#include "gl/context_private.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of GL_NVX_gpu_memory_info and GL_ATI_meminfo, both in KiB. */
enum { DEDICATED_MEMORY_NVX = 0x9047, TEXTURE_FREE_MEMORY_ATI = 0x87FC };

void gl_copy_text(char *to, size_t capacity, const char *from)
{
    snprintf(to, capacity, "%s", from ? from : "");
}

struct gl_amount gl_amount_of(int64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && unit < 5) {
        value /= 1024;
        unit++;
    }
    struct gl_amount amount;
    snprintf(amount.text, sizeof(amount.text), "%.*f %s", unit > 0 ? 1 : 0, value, units[unit]);
    return amount;
}

const char *gl_error_name(GLenum error)
{
    switch (error) {
    case GL_INVALID_ENUM:
        return "GL_INVALID_ENUM";
    case GL_INVALID_VALUE:
        return "GL_INVALID_VALUE";
    case GL_INVALID_OPERATION:
        return "GL_INVALID_OPERATION";
    case GL_INVALID_FRAMEBUFFER_OPERATION:
        return "GL_INVALID_FRAMEBUFFER_OPERATION";
    case GL_OUT_OF_MEMORY:
        return "GL_OUT_OF_MEMORY";
    case GL_CONTEXT_LOST:
        return "GL_CONTEXT_LOST";
    default:
        return "an unknown OpenGL error";
    }
}

/* ---- starting ---- */

static int integer(GLenum what)
{
    GLint value = 0;
    glGetIntegerv(what, &value);
    return value;
}

static bool names_software(const char *renderer)
{
    static const char *const names[] = {"llvmpipe", "softpipe", "swrast", "SWR",
                                        "Software Rasterizer"};
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        if (strstr(renderer, names[k]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool has_extension(const char *name)
{
    const int count = integer(GL_NUM_EXTENSIONS);
    for (int k = 0; k < count; k++) {
        if (strcmp((const char *)glGetStringi(GL_EXTENSIONS, (GLuint)k), name) == 0) {
            return true;
        }
    }
    return false;
}

static int64_t device_memory(void)
{
    GLint kibibytes[4] = {0};
    if (has_extension("GL_NVX_gpu_memory_info")) {
        glGetIntegerv(DEDICATED_MEMORY_NVX, kibibytes);
    } else if (has_extension("GL_ATI_meminfo")) {
        glGetIntegerv(TEXTURE_FREE_MEMORY_ATI, kibibytes);
    }
    return (int64_t)(uint32_t)kibibytes[0] * 1024;
}

static void read_driver(struct gl_limits *limits)
{
    gl_copy_text(limits->renderer, sizeof(limits->renderer),
                 (const char *)glGetString(GL_RENDERER));
    gl_copy_text(limits->vendor, sizeof(limits->vendor), (const char *)glGetString(GL_VENDOR));
    gl_copy_text(limits->version, sizeof(limits->version), (const char *)glGetString(GL_VERSION));
    limits->software = names_software(limits->renderer);
    limits->nv_float_atomics = has_extension("GL_NV_shader_atomic_float");
    limits->viewport_layer_array = has_extension("GL_ARB_shader_viewport_layer_array");
    limits->memory_bytes = device_memory();
}

static void read_limits(struct gl_limits *limits)
{
    GLint64 storage = 0;
    glGetInteger64v(GL_MAX_SHADER_STORAGE_BLOCK_SIZE, &storage);
    limits->max_storage_bytes = storage;
    limits->max_texture_size = integer(GL_MAX_TEXTURE_SIZE);
    limits->max_3d_texture_size = integer(GL_MAX_3D_TEXTURE_SIZE);
    limits->max_array_layers = integer(GL_MAX_ARRAY_TEXTURE_LAYERS);
    glGetIntegerv(GL_MAX_VIEWPORT_DIMS, limits->max_viewport_size);
    limits->max_uniform_bytes = integer(GL_MAX_UNIFORM_BLOCK_SIZE);
    limits->storage_alignment = integer(GL_SHADER_STORAGE_BUFFER_OFFSET_ALIGNMENT);
    limits->max_storage_bindings = integer(GL_MAX_SHADER_STORAGE_BUFFER_BINDINGS);
    limits->max_vertex_storage_blocks = integer(GL_MAX_VERTEX_SHADER_STORAGE_BLOCKS);
    limits->max_fragment_storage_blocks = integer(GL_MAX_FRAGMENT_SHADER_STORAGE_BLOCKS);
    limits->max_compute_storage_blocks = integer(GL_MAX_COMPUTE_SHADER_STORAGE_BLOCKS);
    limits->max_vertex_images = integer(GL_MAX_VERTEX_IMAGE_UNIFORMS);
    limits->max_fragment_images = integer(GL_MAX_FRAGMENT_IMAGE_UNIFORMS);
    limits->max_clip_distances = integer(GL_MAX_CLIP_DISTANCES);
    limits->max_colour_attachments = integer(GL_MAX_COLOR_ATTACHMENTS);
    limits->max_compute_invocations = integer(GL_MAX_COMPUTE_WORK_GROUP_INVOCATIONS);
    for (GLuint k = 0; k < 3; k++) {
        glGetIntegeri_v(GL_MAX_COMPUTE_WORK_GROUP_COUNT, k, &limits->max_compute_groups[k]);
        glGetIntegeri_v(GL_MAX_COMPUTE_WORK_GROUP_SIZE, k, &limits->max_compute_group_size[k]);
    }
}

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
    const int version = 10 * integer(GL_MAJOR_VERSION) + integer(GL_MINOR_VERSION);
    if (version < 45 || glCreateTextures == NULL) {
        snprintf(reason, capacity, "OpenGL 4.5 is needed, and this is %s",
                 (const char *)glGetString(GL_VERSION));
        return LR_NO_DEVICE;
    }
    read_driver(&ctx->limits);
    read_limits(&ctx->limits);
    gl_context_drop_errors(ctx);
    if (!ctx->adopted || ctx->debug) {
        gl_debug_install(ctx);
    }
    return LR_OK;
}

struct gl_context *gl_context_adopt(const struct gl_context_params *params)
{
    struct gl_context *ctx = lr_alloc(1, sizeof(*ctx), "an OpenGL context", params->log);
    if (ctx == NULL) {
        return NULL;
    }
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
    glDeleteVertexArrays(1, &ctx->vertex_array);
    gl_stream_finish(ctx);
    glDeleteBuffers(1, &ctx->staging_buffer);
}

void gl_context_destroy(struct gl_context *ctx)
{
    if (ctx == NULL) {
        return;
    }
    if (ctx->adopted) {
        delete_objects(ctx);
        if (ctx->debug) {
            gl_debug_remove(ctx);
        }
    } else {
        if (ctx->is_shared && gl_context_make_current(ctx) == LR_OK) {
            delete_objects(ctx);
        }
        if (ctx->times_current > 0) {
            ctx->times_current = 1;
            gl_context_release(ctx);
        }
        egl_context_close(&ctx->egl);
    }
    free(ctx);
}

lr_status gl_context_make_current(struct gl_context *ctx)
{
    if (ctx->times_current == 0) {
        char reason[256] = "";
        if (!ctx->adopted &&
            !egl_context_make_current(&ctx->egl, &ctx->before, reason, sizeof(reason))) {
            return lr_error(ctx->log, LR_NO_DEVICE,
                            "the OpenGL context on %s cannot be made current: %s",
                            ctx->limits.renderer, reason);
        }
        gl_pass_baseline(ctx);
    }
    ctx->times_current++;
    return LR_OK;
}

void gl_context_release(struct gl_context *ctx)
{
    if (ctx->times_current == 0 || --ctx->times_current > 0 || ctx->adopted) {
        return;
    }
    if (!egl_context_restore(&ctx->egl, &ctx->before)) {
        lr_warn(ctx->log, "the OpenGL context that was current before cannot be made current "
                          "again: make it current before drawing with it");
    }
}

const struct gl_limits *gl_context_limits(const struct gl_context *ctx)
{
    return &ctx->limits;
}

uint64_t gl_context_new_number(struct gl_context *ctx)
{
    return ++ctx->last_number;
}

const lr_log *gl_context_log(const struct gl_context *ctx)
{
    return ctx->log;
}

bool gl_context_saw_error(const struct gl_context *ctx)
{
    return ctx->saw_error;
}

/* ---- errors ---- */

void gl_context_drop_errors(struct gl_context *ctx)
{
    (void)ctx;
    /* A lost context reports its loss for ever. */
    for (int k = 0; k < 16 && glGetError() != GL_NO_ERROR; k++) {
    }
}

static lr_status report_loss(struct gl_context *ctx, const char *what)
{
    ctx->saw_error = true;
    return lr_error(ctx->log, LR_NO_DEVICE,
                    "%s: %s was reset by its driver and its contents are lost: run again, with "
                    "less work per step if it happens each time",
                    what, ctx->limits.renderer);
}

lr_status gl_context_check(struct gl_context *ctx, const char *what)
{
    if (glGetGraphicsResetStatus() != GL_NO_ERROR) {
        return report_loss(ctx, what);
    }
    const GLenum error = glGetError();
    if (error == GL_NO_ERROR) {
        return LR_OK;
    }
    gl_context_drop_errors(ctx);
    if (error == GL_CONTEXT_LOST) {
        return report_loss(ctx, what);
    }
    ctx->saw_error = true;
    if (error == GL_OUT_OF_MEMORY) {
        return lr_error(
            ctx->log, LR_FAILED,
            "%s: the memory of %s is used up: close other programs that use it, or make "
            "the work smaller",
            what, ctx->limits.renderer);
    }
    return lr_error(ctx->log, LR_FAILED, "%s: %s reports %s (OpenGL %s)", what,
                    ctx->limits.renderer, gl_error_name(error), ctx->limits.version);
}
