/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/pool.h"

/* A projection makes a handful of small tables anew, too. */
enum { LEAST_BYTES = 1 << 6 };

static void leave_out(struct gl_pool *pool, int which)
{
    pool->bytes -= pool->held[which].bytes;
    pool->count--;
    for (int k = which; k < pool->count; k++) pool->held[k] = pool->held[k + 1];
}

GLuint gl_pool_take(struct gl_pool *pool, int64_t bytes)
{
    for (int k = pool->count - 1; k >= 0; k--) {
        if (pool->held[k].bytes == bytes) {
            const GLuint name = pool->held[k].name;
            leave_out(pool, k);
            return name;
        }
    }
    return 0;
}

static void delete_oldest(struct gl_pool *pool)
{
    glDeleteBuffers(1, &pool->held[0].name);
    leave_out(pool, 0);
}

void gl_pool_give(struct gl_pool *pool, GLuint name, int64_t bytes)
{
    if (bytes < LEAST_BYTES || bytes > pool->most_bytes) {
        glDeleteBuffers(1, &name);
        return;
    }
    while (pool->count == GL_POOL_MOST || pool->bytes > pool->most_bytes - bytes) delete_oldest(pool);
    pool->held[pool->count++] = (struct gl_pooled){name, bytes};
    pool->bytes += bytes;
}

void gl_pool_empty(struct gl_pool *pool)
{
    while (pool->count > 0) delete_oldest(pool);
}
