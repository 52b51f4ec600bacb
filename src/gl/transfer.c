/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/transfer.h"

#include "base/log.h"
#include "base/mem.h"
#include "gl/context_private.h"
#include "gl/pass.h"
#include "gl/resource.h"

#include <stddef.h>
#include <string.h>

/* The alignment of offsets of uniform blocks, bytes. OpenGL does not allow a driver to require more. */
enum { STREAM_ALIGNMENT = 256 };

static const GLbitfield write_flags = GL_MAP_WRITE_BIT | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;

int64_t gl_stream_most(const struct gl_context *ctx)
{
    return ctx->limits.software ? 1 << 19 : 1 << 22;
}

lr_status gl_stream_write(struct gl_context *ctx, const void *data, int64_t bytes, int64_t *offset)
{
    struct gl_stream *stream = &ctx->stream;
    const int64_t most = gl_stream_most(ctx);
    if (stream->name == 0) {
        const GLsizeiptr ring_bytes = (GLsizeiptr)(GL_STREAM_SEGMENTS * most);
        glCreateBuffers(1, &stream->name);
        glObjectLabel(GL_BUFFER, stream->name, -1, "upload ring");
        glNamedBufferStorage(stream->name, ring_bytes, NULL, write_flags);
        stream->mapped = glMapNamedBufferRange(stream->name, 0, ring_bytes, write_flags);
        if (stream->mapped == NULL) {
            gl_stream_finish(ctx);
            return lr_error(ctx->log, LR_FAILED,
                            "the driver cannot map %lld KiB of memory for uploads: close other programs "
                            "that use the device",
                            (long long)ring_bytes / 1024);
        }
    }

    if (bytes > most) {
        return lr_error(ctx->log, LR_FAILED, "an upload has %lld bytes, and at most %lld go at once", (long long)bytes,
                        (long long)most);
    }
    if (stream->used + bytes > most) {
        stream->fences[stream->segment] = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
        stream->segment = (stream->segment + 1) % GL_STREAM_SEGMENTS;
        stream->used = 0;
        LR_TRY(gl_context_wait(ctx, &stream->fences[stream->segment], "upload ring"));
    }
    *offset = stream->segment * most + stream->used;
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

/* --- readback --- */

static const GLbitfield read_flags = GL_MAP_READ_BIT | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;

static void drop_fence(struct gl_readback *readback)
{
    if (readback->fence != NULL) {
        glDeleteSync(readback->fence);
        readback->fence = NULL;
    }
}

void gl_readback_finish(struct gl_readback *readback)
{
    drop_fence(readback);
    glDeleteBuffers(1, &readback->name);
    *readback = (struct gl_readback){.ctx = readback->ctx, .label = readback->label};
}

lr_status gl_readback_reserve(struct gl_readback *readback, int64_t bytes)
{
    if (bytes <= readback->size_bytes) return LR_OK;
    gl_readback_finish(readback);
    LR_TRY(gl_context_check(readback->ctx, readback->label));
    glCreateBuffers(1, &readback->name);
    glObjectLabel(GL_BUFFER, readback->name, -1, readback->label);
    glNamedBufferStorage(readback->name, (GLsizeiptr)bytes, NULL, read_flags | GL_CLIENT_STORAGE_BIT);
    if (glGetError() == GL_NO_ERROR) /* after an error, there is no storage that could be mapped */
        readback->mapped = glMapNamedBufferRange(readback->name, 0, (GLsizeiptr)bytes, read_flags);
    if (readback->mapped == NULL) {
        gl_readback_finish(readback);
        gl_context_drop_errors(readback->ctx);
        LR_TRY(gl_context_check(readback->ctx, readback->label)); /* reports a lost context, which would be the cause */
        return lr_error(readback->ctx->log, LR_FAILED,
                        "%s: the driver cannot map %s of the machine's memory: close other programs that need memory",
                        readback->label, lr_bytes_text((double)bytes, (char[32]){0}));
    }
    readback->size_bytes = bytes;
    return LR_OK;
}

lr_status gl_readback_copy(struct gl_readback *readback, const struct gl_buffer_range *range)
{
    const struct gl_buffer *from = range->from;
    LR_TRY(gl_loan_check(readback->ctx, from->loan, from->label));
    if (range->bytes < 0 || range->from_offset < 0 || range->to_offset < 0 ||
        range->bytes > from->size_bytes - range->from_offset ||
        range->bytes > readback->size_bytes - range->to_offset) {
        return lr_error(readback->ctx->log, LR_USAGE, "%s: %lld bytes at %lld of %s and %lld here are not inside both",
                        readback->label, (long long)range->bytes, (long long)range->from_offset, from->label,
                        (long long)range->to_offset);
    }
    drop_fence(readback);
    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    glCopyNamedBufferSubData(from->name, readback->name, (GLintptr)range->from_offset, (GLintptr)range->to_offset,
                             (GLsizeiptr)range->bytes);
    return LR_OK;
}

void gl_readback_send(struct gl_readback *readback)
{
    drop_fence(readback);
    readback->fence = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    glFlush();
}

lr_status gl_readback_wait(struct gl_readback *readback)
{
    LR_TRY(gl_context_wait(readback->ctx, &readback->fence, readback->label));
    return gl_context_check(readback->ctx, readback->label);
}

lr_status gl_loan_check(const struct gl_context *ctx, const struct gl_loan *loan, const char *label)
{
    if (loan == NULL || !loan->is_out) return LR_OK;
    return lr_error(ctx->log, LR_USAGE, "%s is out on a loan: OpenGL may use it when it is back", label);
}
