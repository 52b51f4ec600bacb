/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Storage of buffers that were destroyed, for the next ones of the same size: drivers take milliseconds
 * to find and to free a hundred megabytes, and projections want the same buffers again and again. */
#ifndef LR_GL_POOL_H
#define LR_GL_POOL_H

#include <GL/glew.h>
#include <stdint.h>

enum { GL_POOL_MOST = 64 };

struct gl_pooled {
    GLuint name;
    int64_t bytes;
};

/* Zero is an empty one. */
struct gl_pool {
    struct gl_pooled held[GL_POOL_MOST]; /* the oldest first */
    int count;
    int64_t bytes;      /* of all */
    int64_t most_bytes; /* what is beyond is deleted, the oldest first */
};

/* A buffer of exactly that size, with whatever it holds; 0 = there is none. The context is current, here
 * and below. */
GLuint gl_pool_take(struct gl_pool *pool, int64_t bytes);

/* The buffer is the pool's from now on; what is too small to matter, or too large, is deleted. */
void gl_pool_give(struct gl_pool *pool, GLuint name, int64_t bytes);

/* Deletes all of them. */
void gl_pool_empty(struct gl_pool *pool);

#endif
