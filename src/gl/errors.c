/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Errors of OpenGL, messages about them, and the limits of a context. */
#include "gl/context.h"

#include "base/log.h"
#include "base/mem.h"
#include "gl/context_private.h"
#include "gl/program.h"

#include <stdio.h>
#include <string.h>

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

const char *gl_error_name(GLenum error)
{
    switch (error) {
    case GL_INVALID_ENUM: return "GL_INVALID_ENUM";
    case GL_INVALID_VALUE: return "GL_INVALID_VALUE";
    case GL_INVALID_OPERATION: return "GL_INVALID_OPERATION";
    case GL_INVALID_FRAMEBUFFER_OPERATION: return "GL_INVALID_FRAMEBUFFER_OPERATION";
    case GL_OUT_OF_MEMORY: return "GL_OUT_OF_MEMORY";
    case GL_CONTEXT_LOST: return "GL_CONTEXT_LOST";
    default: return "an unknown OpenGL error";
    }
}

void gl_context_drop_errors(struct gl_context *ctx)
{
    (void)ctx;
    /* The loop has a limit, because a lost context reports its loss at every call. */
    for (int k = 0; k < 16 && glGetError() != GL_NO_ERROR; k++) {
    }
}

lr_status gl_context_report_loss(struct gl_context *ctx, const char *what)
{
    ctx->saw_error = ctx->is_lost = true;
    if (ctx->has_logged_loss) return LR_NO_DEVICE;
    ctx->has_logged_loss = true;
    return lr_error(ctx->log, LR_NO_DEVICE,
                    "%s: %s was reset by its driver and its contents are lost: run again, with "
                    "less work per step if it happens each time",
                    what, ctx->limits.renderer);
}

lr_status gl_context_check(struct gl_context *ctx, const char *what)
{
    return glGetGraphicsResetStatus() != GL_NO_ERROR ? gl_context_report_loss(ctx, what)
                                                     : gl_context_check_errors(ctx, what);
}

lr_status gl_context_check_errors(struct gl_context *ctx, const char *what)
{
    const GLenum error = glGetError();
    if (error == GL_NO_ERROR) return LR_OK;
    gl_context_drop_errors(ctx);
    if (error == GL_CONTEXT_LOST) return gl_context_report_loss(ctx, what);
    ctx->saw_error = true;
    if (error == GL_OUT_OF_MEMORY) {
        return lr_error(ctx->log, LR_FAILED,
                        "%s: the memory of %s is used up: close other programs that use it, or make the work smaller",
                        what, ctx->limits.renderer);
    }
    return lr_error(ctx->log, LR_FAILED, "%s: %s reports %s (OpenGL %s)", what, ctx->limits.renderer,
                    gl_error_name(error), ctx->limits.version);
}

lr_status gl_context_wait(struct gl_context *ctx, GLsync *fence, const char *what)
{
    GLenum state = GL_TIMEOUT_EXPIRED;
    if (*fence == NULL) return LR_OK;
    while (state == GL_TIMEOUT_EXPIRED)
        state = glClientWaitSync(*fence, GL_SYNC_FLUSH_COMMANDS_BIT, UINT64_C(1000000000));
    glDeleteSync(*fence);
    *fence = NULL;
    return state == GL_WAIT_FAILED ? gl_context_check(ctx, what) : LR_OK;
}

/* Constants of GL_NVX_gpu_memory_info and GL_ATI_meminfo, for which glGetIntegerv returns memory in KiB. */
enum { DEDICATED_MEMORY_NVX = 0x9047, TEXTURE_FREE_MEMORY_ATI = 0x87FC };

void gl_copy_text(char *to, size_t capacity, const char *from)
{
    snprintf(to, capacity, "%s", from ? from : "");
}

int gl_integer(GLenum what)
{
    GLint value = 0;
    glGetIntegerv(what, &value);
    return value;
}

void gl_limits_read(struct gl_limits *limits)
{
    static const char *const renderers[] = {"llvmpipe", "softpipe", "swrast", "SWR", "Software Rasterizer"};
    limits->software = limits->nv_float_atomics = limits->viewport_layer_array = limits->parallel_compile = false;
    gl_copy_text(limits->renderer, sizeof(limits->renderer), (const char *)glGetString(GL_RENDERER));
    gl_copy_text(limits->vendor, sizeof(limits->vendor), (const char *)glGetString(GL_VENDOR));
    gl_copy_text(limits->version, sizeof(limits->version), (const char *)glGetString(GL_VERSION));
    for (size_t k = 0; k < sizeof(renderers) / sizeof(renderers[0]); k++)
        limits->software = limits->software || strstr(limits->renderer, renderers[k]) != NULL;
    limits->small_batches = gl_takes_small_batches(limits->software);

    bool has_nvx_memory = false, has_ati_memory = false;
    const int count = gl_integer(GL_NUM_EXTENSIONS);
    for (int k = 0; k < count; k++) {
        const char *name = (const char *)glGetStringi(GL_EXTENSIONS, (GLuint)k);
        if (name == NULL) continue; /* the call has failed, and OpenGL reports its error later */
        has_nvx_memory |= strcmp(name, "GL_NVX_gpu_memory_info") == 0;
        has_ati_memory |= strcmp(name, "GL_ATI_meminfo") == 0;
        limits->nv_float_atomics |= strcmp(name, "GL_NV_shader_atomic_float") == 0;
        limits->viewport_layer_array |= strcmp(name, "GL_ARB_shader_viewport_layer_array") == 0;
        limits->parallel_compile |= strcmp(name, "GL_KHR_parallel_shader_compile") == 0;
    }

    /* Software renderers are not asked: Mesa 25 reports 1 MiB, although they use the machine's memory. */
    GLint kibibytes[4] = {0};
    if (has_nvx_memory && !limits->software)
        glGetIntegerv(DEDICATED_MEMORY_NVX, kibibytes);
    else if (has_ati_memory && !limits->software)
        glGetIntegerv(TEXTURE_FREE_MEMORY_ATI, kibibytes);
    limits->memory_bytes = (int64_t)(uint32_t)kibibytes[0] * 1024;

    GLint64 storage = 0;
    glGetInteger64v(GL_MAX_SHADER_STORAGE_BLOCK_SIZE, &storage);
    limits->max_storage_bytes = storage;
    limits->max_texture_size = gl_integer(GL_MAX_TEXTURE_SIZE);
    limits->max_3d_texture_size = gl_integer(GL_MAX_3D_TEXTURE_SIZE);
    limits->max_array_layers = gl_integer(GL_MAX_ARRAY_TEXTURE_LAYERS);
    glGetIntegerv(GL_MAX_VIEWPORT_DIMS, limits->max_viewport_size);
    limits->max_uniform_bytes = gl_integer(GL_MAX_UNIFORM_BLOCK_SIZE);
    limits->storage_alignment = gl_integer(GL_SHADER_STORAGE_BUFFER_OFFSET_ALIGNMENT);
    limits->max_storage_bindings = gl_integer(GL_MAX_SHADER_STORAGE_BUFFER_BINDINGS);
    limits->max_compute_storage_blocks = gl_integer(GL_MAX_COMPUTE_SHADER_STORAGE_BLOCKS);
    limits->max_clip_distances = gl_integer(GL_MAX_CLIP_DISTANCES);
    limits->max_colour_attachments = gl_integer(GL_MAX_COLOR_ATTACHMENTS);
    limits->max_compute_shared_bytes = gl_integer(GL_MAX_COMPUTE_SHARED_MEMORY_SIZE);
    for (GLuint k = 0; k < 3; k++) glGetIntegeri_v(GL_MAX_COMPUTE_WORK_GROUP_COUNT, k, &limits->max_compute_groups[k]);
}

void gl_context_clear_by_driver(struct gl_context *ctx)
{
    ctx->clears_by_driver = true;
}

const struct gl_limits *gl_context_limits(const struct gl_context *ctx)
{
    return &ctx->limits;
}
