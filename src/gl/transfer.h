/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Uploads that happen in order with other commands. Data are written to a mapped ring buffer, and the device copies
 * them from there. Fences protect data that have not been copied yet. Direct updates of a buffer are not always in
 * order: with NVIDIA's driver 580, glNamedBufferSubData overtakes queued clears and draws. */
#pragma once

#include "gl/context.h"
#include "gl/resource.h"

enum { GL_STREAM_SEGMENTS = 4 };

/* The ring of a context. The struct is zero before its first use. */
struct gl_stream {
    GLuint name;           /* the ring's buffer; 0 before first use */
    unsigned char *mapped; /* [GL_STREAM_SEGMENTS][gl_stream_most] */
    int segment;
    int64_t used;                      /* bytes used in the current segment */
    GLsync fences[GL_STREAM_SEGMENTS]; /* [segment]: the host waits for the fence before the segment is reused */
};

/* Returns the largest size of one write, bytes. Software renderers have a smaller ring, because they clear a new ring
 * slowly. */
int64_t gl_stream_most(const struct gl_context *ctx);

/* Copies at most gl_stream_most bytes into the ring. *offset: receives their position in the buffer ctx->stream.name, a
 * multiple of 256. Commands that use these bytes must be issued before the next write. errors: LR_FAILED or
 * LR_NO_DEVICE, logged. */
lr_status gl_stream_write(struct gl_context *ctx, const void *data, int64_t bytes, int64_t *offset);

/* Frees the ring. The context must be current. */
void gl_stream_finish(struct gl_context *ctx);

/* --- readback --- */

/* Memory of the host into which the device copies data while the host does other work. The host reads the data there
 * once they have arrived. */

/* The caller sets ctx and label, and zeroes the rest. */
struct gl_readback {
    struct gl_context *ctx;
    const char *label; /* not copied */
    GLuint name;       /* 0 = no memory yet */
    const unsigned char *mapped;
    int64_t size_bytes;
    GLsync fence; /* a fence behind the copies that were sent */
};

/* Frees the memory of a readback. The context must be current for this function and those below. */
void gl_readback_finish(struct gl_readback *readback);

/* Makes room for `bytes` bytes. If the memory has to grow, its contents are lost. Copies must not be in progress.
 * errors, also of the functions below: LR_FAILED or LR_NO_DEVICE, logged. */
lr_status gl_readback_reserve(struct gl_readback *readback, int64_t bytes);

/* Queues a copy after all earlier commands. range->to is not read. gl_readback_wait waits for this copy only after the
 * next gl_readback_send. errors: also LR_USAGE for ranges outside the buffers. */
lr_status gl_readback_copy(struct gl_readback *readback, const struct gl_buffer_range *range);

/* Submits queued copies to the device, and does not wait. */
void gl_readback_send(struct gl_readback *readback);

/* Waits until the copies that were sent have arrived in readback->mapped. */
lr_status gl_readback_wait(struct gl_readback *readback);
