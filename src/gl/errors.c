/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/clock.h"
#include "base/log.h"
#include "gl/context_private.h"

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
    /* A lost context reports its loss for ever. */
    for (int k = 0; k < 16 && glGetError() != GL_NO_ERROR; k++) {
    }
}

static lr_status report_loss(struct gl_context *ctx, const char *what)
{
    ctx->saw_error = ctx->is_lost = true;
    if (ctx->told_loss) return LR_NO_DEVICE;
    ctx->told_loss = true;
    return lr_error(ctx->log, LR_NO_DEVICE,
                    "%s: %s was reset by its driver and its contents are lost: run again, with "
                    "less work per step if it happens each time",
                    what, ctx->limits.renderer);
}

lr_status gl_context_check(struct gl_context *ctx, const char *what)
{
    return glGetGraphicsResetStatus() != GL_NO_ERROR ? report_loss(ctx, what) : gl_context_check_errors(ctx, what);
}

lr_status gl_context_check_errors(struct gl_context *ctx, const char *what)
{
    const GLenum error = glGetError();
    if (error == GL_NO_ERROR) return LR_OK;
    gl_context_drop_errors(ctx);
    if (error == GL_CONTEXT_LOST) return report_loss(ctx, what);
    ctx->saw_error = true;
    if (error == GL_OUT_OF_MEMORY) {
        return lr_error(ctx->log, LR_FAILED,
                        "%s: the memory of %s is used up: close other programs that use it, or make "
                        "the work smaller",
                        what, ctx->limits.renderer);
    }
    return lr_error(ctx->log, LR_FAILED, "%s: %s reports %s (OpenGL %s)", what, ctx->limits.renderer,
                    gl_error_name(error), ctx->limits.version);
}

lr_status gl_context_wait(struct gl_context *ctx, GLsync *fence, const char *what)
{
    GLenum state = GL_TIMEOUT_EXPIRED;
    if (*fence == NULL) return LR_OK;
    const double begin_s = lr_clock_seconds();
    while (state == GL_TIMEOUT_EXPIRED)
        state = glClientWaitSync(*fence, GL_SYNC_FLUSH_COMMANDS_BIT, UINT64_C(1000000000));
    gl_trace_wait(ctx->trace, what, begin_s);
    glDeleteSync(*fence);
    *fence = NULL;
    return state == GL_WAIT_FAILED ? gl_context_check(ctx, what) : LR_OK;
}
