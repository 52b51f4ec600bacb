/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Memory of the machine to which the device copies while the host does something else. What has arrived
 * is read where it lies. */
#ifndef LR_GL_READBACK_H
#define LR_GL_READBACK_H

#include "gl/resource.h"

/* Set ctx and label, zero the rest. */
struct gl_readback {
    struct gl_context *ctx;
    const char *label; /* outlives it */
    GLuint name;       /* 0 before it has memory */
    const unsigned char *mapped;
    int64_t size_bytes;
    GLsync fence; /* behind the copies that were sent */
};

/* The context is current, here and below. */
void gl_readback_finish(struct gl_readback *readback);

/* Room for that many bytes; where it has to grow, what there is is lost. Nothing is on its way.
 * errors, here and below: LR_FAILED or LR_NO_DEVICE, logged. */
lr_status gl_readback_reserve(struct gl_readback *readback, int64_t bytes);

/* Queues a copy, after all commands so far; range->to is not read. What was sent before is to be sent
 * again, with it. errors: also LR_USAGE for what lies outside. */
lr_status gl_readback_copy(struct gl_readback *readback, const struct gl_buffer_range *range);

/* Hands the device what is queued, and waits for nothing. */
void gl_readback_send(struct gl_readback *readback);

/* Waits until what was sent has arrived, in readback->mapped. */
lr_status gl_readback_wait(struct gl_readback *readback);

#endif
