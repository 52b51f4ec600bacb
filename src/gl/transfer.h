/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Uploads in the order of commands. Data is written to a mapped ring buffer guarded by fences, and the device copies it
 * from there. Updating a buffer directly is not in order everywhere: with NVIDIA's driver 580 glNamedBufferSubData
 * overtakes clears and draws that are still queued. */
#ifndef LR_GL_TRANSFER_H
#define LR_GL_TRANSFER_H

#include "gl/context.h"
#include "gl/resource.h"

enum { GL_STREAM_SEGMENTS = 4 };

/* Part of a context; zero until first used. */
struct gl_stream {
    GLuint name;           /* the ring, a buffer; 0 before first use */
    unsigned char *mapped; /* [GL_STREAM_SEGMENTS][gl_stream_most] */
    int segment;
    int64_t used;                      /* bytes of the segment */
    GLsync fences[GL_STREAM_SEGMENTS]; /* fences to wait for before a segment is written again */
};

/* The largest number of bytes in a write. The ring is smaller for software renderers, which take time to clear it
 * when it is made. */
int64_t gl_stream_most(const struct gl_context *ctx);

/* Copies at most gl_stream_most bytes into the ring, and sets *offset to their place in the buffer ctx->stream.name, a
 * multiple of 256. Commands that use the bytes must be issued before the next write. errors: LR_FAILED or LR_NO_DEVICE,
 * logged. */
lr_status gl_stream_write(struct gl_context *ctx, const void *data, int64_t bytes, int64_t *offset);

/* Frees the ring. The context is current. */
void gl_stream_finish(struct gl_context *ctx);

/* --- readback --- */

/* Memory of the machine to which the device copies while the host does something else. Arrived data is read in
 * place. */

/* The caller sets ctx and label, and zeroes the rest. */
struct gl_readback {
    struct gl_context *ctx;
    const char *label; /* not copied */
    GLuint name;       /* 0 before it has memory */
    const unsigned char *mapped;
    int64_t size_bytes;
    GLsync fence; /* after the copies that were sent */
};

/* The context is current, here and below. */
void gl_readback_finish(struct gl_readback *readback);

/* Makes room for `bytes`. The contents are lost if the readback has to grow. No copy may be under way. errors, here and
 * below: LR_FAILED or LR_NO_DEVICE, logged. */
lr_status gl_readback_reserve(struct gl_readback *readback, int64_t bytes);

/* Queues a copy after all commands so far; range->to is not read. The next gl_readback_send covers earlier copies, too,
 * even those already sent. errors: also LR_USAGE for ranges outside the buffers. */
lr_status gl_readback_copy(struct gl_readback *readback, const struct gl_buffer_range *range);

/* Submits the queued copies to the device without waiting. */
void gl_readback_send(struct gl_readback *readback);

/* Waits until the sent copies have arrived in readback->mapped. */
lr_status gl_readback_wait(struct gl_readback *readback);

#endif
