/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Loops that several threads share. The threads wait in a pool from one loop to the next, as starting one takes
 * longer than many a loop; a thread that has waited for a second ends. A child of fork() starts its own threads. */
#ifndef LR_BASE_PARALLEL_H
#define LR_BASE_PARALLEL_H

#include <stdatomic.h>
#include <stdint.h>

/* Processors that this process may use when it is first asked, at least 1. */
int lr_num_processors(void);

/* One share of a loop: indices begin <= i < end, by worker 0 <= worker < threads. */
typedef void lr_parallel_body(void *user, int64_t begin, int64_t end, int worker);

/* Calls body over 0 .. count-1 in shares of `grain`, handed out as workers become free, and
 * returns when all are done. Worker 0 is the calling thread. With one thread, or when threads
 * cannot be started, everything runs on the caller. */
void lr_parallel_for(int threads, int64_t count, int64_t grain, lr_parallel_body *body, void *user);

/* Lowers *least to a smaller number; several threads that look for the first of something share it. */
static inline void lr_lower(atomic_llong *least, int64_t number)
{
    long long known = atomic_load(least);
    while (number < known && !atomic_compare_exchange_weak(least, &known, number)) {
    }
}

struct lr_pool_thread;

/* A loop in two steps, between which the caller does something else while other threads work at it. Set the first
 * five fields, zero the rest; it must not move in between. */
struct lr_parallel {
    int threads;
    int64_t count, grain;
    lr_parallel_body *body;
    void *user;
    int64_t num_shares;
    atomic_llong next_share;
    struct lr_pool_thread **helpers; /* owned [num_helpers] */
    int num_helpers;
};

/* Starts threads - 1 threads; the caller is the last one. */
void lr_parallel_begin(struct lr_parallel *loop);

/* Does what nobody has begun yet, and waits for the rest. */
void lr_parallel_end(struct lr_parallel *loop);

/* One call that a thread of the pool makes. */
struct lr_pool_task {
    void (*body)(void *user, int worker);
    void *user;
    int worker;
};

/* A pool of threads. The library and each plugin have a copy of this file; plugins use the library's pool, so that
 * a process has one. */
struct lr_pool {
    /* Returns a thread that does the task, or NULL if none can be started. The caller holds the thread until
     * `finish`. */
    struct lr_pool_thread *(*start)(const struct lr_pool_task *task);
    /* Waits until the task is done, or calls it off if it has not begun. The caller no longer holds the thread. */
    void (*finish)(struct lr_pool_thread *thread);
};

/* The pool that loops of this copy use: its own pool unless lr_pool_use has set another. */
const struct lr_pool *lr_pool_in_use(void);

/* Lets loops that begin from now on use that pool. Any thread may call it, also while loops run. */
void lr_pool_use(const struct lr_pool *pool);

#endif
