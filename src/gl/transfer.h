/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Uploads that keep their order among other commands. Data are written to a mapped ring buffer that fences guard, and
 * the device copies them from the ring. Direct updates of a buffer do not keep the order with every driver: with
 * NVIDIA's driver 580, glNamedBufferSubData overtakes clears and draws that are still queued. */
#ifndef LR_GL_TRANSFER_H
#define LR_GL_TRANSFER_H

#include "gl/context.h"
#include "gl/resource.h"

enum { GL_STREAM_SEGMENTS = 4 };

/* A member of a context; zero before its first use. */
struct gl_stream {
    GLuint name;           /* the ring, a buffer; 0 before first use */
    unsigned char *mapped; /* [GL_STREAM_SEGMENTS][gl_stream_most] */
    int segment;
    int64_t used;                      /* bytes used of the current segment */
    GLsync fences[GL_STREAM_SEGMENTS]; /* one per segment; waited for before the segment is written again */
};

/* The largest size of a write, bytes. The ring is smaller for software renderers, which take time to clear it when it
 * is made. */
int64_t gl_stream_most(const struct gl_context *ctx);

/* Copies at most gl_stream_most bytes into the ring, and sets *offset to their position in the buffer ctx->stream.name,
 * a multiple of 256. Commands that use the bytes must be issued before the next write. errors: LR_FAILED or
 * LR_NO_DEVICE, logged. */
lr_status gl_stream_write(struct gl_context *ctx, const void *data, int64_t bytes, int64_t *offset);

/* Frees the ring. The context is current. */
void gl_stream_finish(struct gl_context *ctx);

/* --- readback --- */

/* Memory of the host to which the device copies while the host does other work. The host reads arrived data directly in
 * this memory. */

/* The caller sets ctx and label, and zeroes the rest. */
struct gl_readback {
    struct gl_context *ctx;
    const char *label; /* not copied */
    GLuint name;       /* 0 = no memory yet */
    const unsigned char *mapped;
    int64_t size_bytes;
    GLsync fence; /* follows the copies that were sent */
};

/* Frees what the readback holds. The context must be current for this function and those below. */
void gl_readback_finish(struct gl_readback *readback);

/* Makes room for `bytes`. If the readback has to grow, its contents are lost. No copy may be under way. errors of this
 * function and those below: LR_FAILED or LR_NO_DEVICE, logged. */
lr_status gl_readback_reserve(struct gl_readback *readback, int64_t bytes);

/* Queues a copy after all earlier commands. range->to is not read. The fence of the next gl_readback_send also covers
 * earlier copies, even those already sent. errors: also LR_USAGE for ranges outside the buffers. */
lr_status gl_readback_copy(struct gl_readback *readback, const struct gl_buffer_range *range);

/* Submits the queued copies to the device without waiting. */
void gl_readback_send(struct gl_readback *readback);

/* Waits until the sent copies have arrived in readback->mapped. */
lr_status gl_readback_wait(struct gl_readback *readback);

#endif
