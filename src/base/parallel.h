/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
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

/* Lowers *least to a number that is less: of the first of something that several threads look for. */
static inline void lr_lower(atomic_llong *least, int64_t number)
{
    long long known = atomic_load(least);
    while (number < known && !atomic_compare_exchange_weak(least, &known, number)) {
    }
}

/* A loop in two steps, between which the caller does something else while others work at it. Set the first
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

/* Sets one thread fewer than `threads` to work, as the caller is the last one. */
void lr_parallel_begin(struct lr_parallel *loop);

/* Does what nobody has begun yet, and waits for the rest. */
void lr_parallel_end(struct lr_parallel *loop);

#endif
