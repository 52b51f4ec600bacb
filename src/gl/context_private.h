/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The parts of a context that only the files of this folder use. */
#ifndef LR_GL_CONTEXT_PRIVATE_H
#define LR_GL_CONTEXT_PRIVATE_H

#include "base/driver.h"
#include "gl/context.h"
#include "gl/egl.h"
#include "gl/transfer.h"

#include <GL/glew.h>
#include <stdint.h>

/* The pool keeps the storage of destroyed buffers for new buffers of the same size. Drivers take milliseconds to
 * allocate and to free a hundred megabytes, and projections need buffers of the same sizes again and again. */
enum { GL_POOL_MOST = 64 };

struct gl_pooled {
    GLuint name;
    int64_t bytes;
};

/* A zero struct is an empty pool. */
struct gl_pool {
    struct gl_pooled held[GL_POOL_MOST]; /* the oldest first */
    int count;
    int64_t bytes;      /* sum over the buffers held */
    int64_t most_bytes; /* above this sum the oldest buffers are deleted */
};

/* Deletes all buffers of a pool. */
void gl_pool_empty(struct gl_pool *pool);

/* The memory layout of an internal format's texels. */
struct gl_format {
    GLenum internal, pixel, type;
    int bytes;
    enum { GL_FORMAT_FLOAT, GL_FORMAT_UINT, GL_FORMAT_INT, GL_FORMAT_DEPTH } kind;
};

/* The entry for an internal format of resource.h; NULL for others. */
const struct gl_format *gl_format_find(GLenum internal);

struct gl_context {
    const lr_log *log;
    bool debug;
    bool adopted;
    bool is_shared; /* its objects outlive it */
    lr_driver_owner owner;
    bool saw_error, is_lost;
    bool has_logged_loss; /* the loss has been logged since the context was made current */
    int times_current;    /* nested gl_context_make_current */
    uint64_t last_number;
    struct egl_context egl;
    struct egl_current before; /* the context that was current on this thread before */
    struct gl_limits limits;

    struct gl_stream stream; /* buffer for uploads and uniform blocks */
    GLuint vertex_array;     /* used by pass.c: an empty vertex array */
    struct gl_program *fill; /* used by resource.c: fills a buffer with one word */
    bool clears_by_driver;   /* gl_context_clear_by_driver */
    GLuint staging_buffer;   /* used by resource.c: buffer for reading other buffers */
    struct gl_pool pool;     /* used by resource.c: storage of destroyed buffers */
    int64_t machine_bytes;   /* used by resource.c: memory of the machine; 0 = not known yet */
};

/* Opens a context in one way, without making it current, and fills *found in any case. errors: LR_NO_DEVICE with
 * found->reason, not logged; LR_FAILED if memory runs out. *ctx is NULL after an error. */
lr_status gl_context_try(const struct egl_way *way, const struct gl_context_params *params, lr_device *found,
                         struct gl_context **ctx);

/* Reads the limits of the current context (errors.c). */
void gl_limits_read(struct gl_limits *limits);
int gl_integer(GLenum what);

/* True if work is sent to the device in small batches. */
bool gl_takes_small_batches(bool is_software);

/* Reports once that the context was reset. Returns LR_NO_DEVICE. */
lr_status gl_context_report_loss(struct gl_context *ctx, const char *what);

/* gl_context_check, but without asking for a loss of the context, since drivers answer that slowly. */
lr_status gl_context_check_errors(struct gl_context *ctx, const char *what);

/* Waits until the device has reached the fence, and deletes it. NULL = returns at once. errors: as gl_context_check. */
lr_status gl_context_wait(struct gl_context *ctx, GLsync *fence, const char *what);

/* Discards the pending OpenGL errors after one was reported. Before work that will be checked, call gl_context_check
 * instead: this function would lose the failure of earlier work. */
void gl_context_drop_errors(struct gl_context *ctx);

/* Sends the driver's messages to the log from now on (errors.c). */
void gl_debug_install(struct gl_context *ctx);

/* Brings the current context to the baseline of pass.h, whatever its state (pass.c). */
void gl_pass_baseline(struct gl_context *ctx);

/* "GL_OUT_OF_MEMORY" for 0x0505, else the number. */
const char *gl_error_name(GLenum error);

/* Copies text, which is cut if it is longer than the capacity. */
void gl_copy_text(char *to, size_t capacity, const char *from);

/* "12.3 MiB", for messages. */
struct gl_amount {
    char text[32];
};
struct gl_amount gl_amount_of(int64_t bytes);

#endif
