/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The members of a context, for the files of this folder only. */
#pragma once

#include "base/driver.h"
#include "gl/context.h"
#include "gl/egl.h"
#include "gl/transfer.h"

#include <GL/glew.h>
#include <stdint.h>

/* The pool keeps the storage of destroyed buffers, and new buffers of the same size take it. This saves time, because
 * projections need buffers of the same sizes again and again, and drivers take milliseconds to allocate or free a
 * hundred megabytes. */
enum { GL_POOL_MOST = 64 };

struct gl_pooled {
    GLuint name;
    int64_t bytes;
};

/* A struct of zeros is an empty pool. */
struct gl_pool {
    struct gl_pooled held[GL_POOL_MOST]; /* oldest first */
    int count;
    int64_t bytes;      /* bytes of all buffers in `held` */
    int64_t most_bytes; /* limit of `bytes`; above it, the oldest buffers are deleted */
};

void gl_pool_empty(struct gl_pool *pool);

/* The layout in memory of the texels of an internal format. */
struct gl_format {
    GLenum internal, pixel, type;
    int bytes;
    enum { GL_FORMAT_FLOAT, GL_FORMAT_UINT, GL_FORMAT_INT, GL_FORMAT_DEPTH } kind;
};

/* Finds an internal format of resource.h; NULL for other formats. */
const struct gl_format *gl_format_find(GLenum internal);

struct gl_context {
    const lr_log *log;
    bool debug;
    bool adopted;
    bool is_shared; /* true if objects of the context live longer than the context */
    lr_driver_owner owner;
    bool saw_error; /* for tests: true if the driver has reported an error, or a message of high severity */
    bool is_lost;
    bool has_logged_loss; /* true if the loss was logged after the context was made current */
    int times_current;    /* number of calls of gl_context_make_current that have not been released */
    uint64_t last_number;
    struct egl_context egl;
    struct egl_current before; /* the thread's current context before the first of the calls that are not released */
    struct gl_limits limits;

    struct gl_stream stream; /* buffer for uploads and uniform blocks */
    GLuint vertex_array;     /* used by pass.c: an empty vertex array */
    struct gl_program *fill; /* used by resource.c: fills a buffer with one word */
    bool clears_by_driver;   /* set by gl_context_clear_by_driver */
    GLuint staging_buffer;   /* used by resource.c: buffer for reading other buffers */
    struct gl_pool pool;     /* used by resource.c: storage of destroyed buffers */
    int64_t machine_bytes;   /* used by resource.c: memory of the machine; 0 = not known yet */
};

/* Opens a context in one way, without making it current. *found is always set. *ctx is NULL after an error. errors:
 * LR_NO_DEVICE, with the reason in found->reason but not in the log; LR_FAILED if memory runs out. */
lr_status gl_context_try(const struct egl_way *way, const struct gl_context_params *params, lr_device *found,
                         struct gl_context **ctx);

/* Reads the limits of the current context (errors.c). */
void gl_limits_read(struct gl_limits *limits);
int gl_integer(GLenum what);

/* Returns true if the device gets work in small batches. */
bool gl_takes_small_batches(bool is_software);

/* Reports once that the context was reset. Returns LR_NO_DEVICE. */
lr_status gl_context_report_loss(struct gl_context *ctx, const char *what);

/* Checks for errors like gl_context_check, but does not ask if the context was lost, because drivers are slow to
 * answer. */
lr_status gl_context_check_errors(struct gl_context *ctx, const char *what);

/* Waits until the device has reached the fence, and deletes the fence. fence: NULL = returns at once. errors: the
 * errors of gl_context_check. */
lr_status gl_context_wait(struct gl_context *ctx, GLsync *fence, const char *what);

/* Discards pending OpenGL errors, after one of them has been reported. Do not call this function before work that is
 * checked later, because errors of earlier work would be lost. Call gl_context_check instead. */
void gl_context_drop_errors(struct gl_context *ctx);

/* Sets the state of the current context to the baseline of pass.h (pass.c). */
void gl_pass_baseline(struct gl_context *ctx);

/* Returns the name of an error, for example "GL_OUT_OF_MEMORY" for 0x0505, or the number of an unknown error. */
const char *gl_error_name(GLenum error);

/* Copies text, and cuts it if it is longer than the capacity. */
void gl_copy_text(char *to, size_t capacity, const char *from);
