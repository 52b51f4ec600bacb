/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/stream.h"

#include "base/log.h"
#include "gl/context_private.h"

#include <string.h>

/* The largest alignment that drivers may ask of uniform blocks. */
enum { STREAM_ALIGNMENT = 256 };

static const GLbitfield map_flags = GL_MAP_WRITE_BIT | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;

int64_t gl_stream_most(const struct gl_context *ctx)
{
    return ctx->limits.software ? 1 << 19 : 1 << 22;
}

static lr_status open_stream(struct gl_context *ctx)
{
    struct gl_stream *stream = &ctx->stream;
    const GLsizeiptr bytes = (GLsizeiptr)(GL_STREAM_SEGMENTS * gl_stream_most(ctx));
    if (stream->name != 0) return LR_OK;
    glCreateBuffers(1, &stream->name);
    glObjectLabel(GL_BUFFER, stream->name, -1, "upload ring");
    glNamedBufferStorage(stream->name, bytes, NULL, map_flags);
    stream->mapped = glMapNamedBufferRange(stream->name, 0, bytes, map_flags);
    if (stream->mapped == NULL) {
        gl_stream_finish(ctx);
        return lr_error(ctx->log, LR_FAILED,
                        "the driver cannot map %lld KiB of memory for uploads: close other programs "
                        "that use the device",
                        (long long)bytes / 1024);
    }
    return LR_OK;
}

static lr_status next_segment(struct gl_context *ctx)
{
    struct gl_stream *stream = &ctx->stream;
    stream->fences[stream->segment] = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    stream->segment = (stream->segment + 1) % GL_STREAM_SEGMENTS;
    stream->used = 0;
    return gl_context_wait(ctx, &stream->fences[stream->segment], "upload ring");
}

lr_status gl_stream_write(struct gl_context *ctx, const void *data, int64_t bytes, int64_t *offset)
{
    struct gl_stream *stream = &ctx->stream;
    LR_TRY(open_stream(ctx));
    if (bytes > gl_stream_most(ctx)) {
        return lr_error(ctx->log, LR_FAILED, "an upload has %lld bytes, and at most %lld go at once", (long long)bytes,
                        (long long)gl_stream_most(ctx));
    }
    if (stream->used + bytes > gl_stream_most(ctx)) LR_TRY(next_segment(ctx));
    *offset = stream->segment * gl_stream_most(ctx) + stream->used;
    memcpy(stream->mapped + *offset, data, (size_t)bytes);
    stream->used += (bytes + STREAM_ALIGNMENT - 1) / STREAM_ALIGNMENT * STREAM_ALIGNMENT;
    return LR_OK;
}

void gl_stream_finish(struct gl_context *ctx)
{
    struct gl_stream *stream = &ctx->stream;
    for (int k = 0; k < GL_STREAM_SEGMENTS; k++)
        if (stream->fences[k] != NULL) glDeleteSync(stream->fences[k]);
    glDeleteBuffers(1, &stream->name);
    *stream = (struct gl_stream){0};
}
