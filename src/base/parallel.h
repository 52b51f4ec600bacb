/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Loops that several threads share. Threads wait in a pool from one loop to the next, because starting a thread takes
 * longer than many loops. A thread that has waited for a second ends. A child of fork() starts its own threads. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns how many processors this process may use, at least 1. The first result is kept. */
int lr_num_processors(void);

/* The body of a loop for indices begin <= i < end. worker: number of the worker that calls the body, 0 <= worker <
 * threads. */
typedef void lr_parallel_body(void *user, int64_t begin, int64_t end);
typedef void lr_worker_body(void *user, int64_t begin, int64_t end, int worker);

/* Calls `body` for all indices 0 .. count - 1 and returns when all are done. Workers take pieces of `grain` indices
 * until none is left. Worker 0 is the calling thread, which does all the work if no other thread can be started. */
void lr_parallel_for(int threads, int64_t count, int64_t grain, lr_parallel_body *body, void *user);
void lr_parallel_workers(int threads, int64_t count, int64_t grain, lr_worker_body *body, void *user);

/* Sets *least to `number` if `number` is smaller. Several threads may call this function for the same *least. */
static inline void lr_lower(atomic_llong *least, int64_t number)
{
    long long known = atomic_load(least);
    while (number < known && !atomic_compare_exchange_weak(least, &known, number)) {
    }
}

struct lr_pool_thread;

/* A loop in two steps. Between the steps the caller does other work, while threads of the pool run the loop. The caller
 * sets one of the two bodies and the other fields up to `plain_body`, and zeroes all further fields. The struct must
 * not move between the steps. */
struct lr_parallel {
    int threads;
    int64_t count, grain;
    lr_worker_body *body;
    void *user;
    lr_parallel_body *plain_body; /* used if `body` is NULL */
    int64_t num_shares;
    atomic_llong next_share;
    struct lr_pool_thread **helpers; /* owned [num_helpers] */
    int num_helpers;
};

/* Makes up to threads - 1 threads of the pool work on the loop. The calling thread works on the loop, too, in
   lr_parallel_end. */
void lr_parallel_begin(struct lr_parallel *loop);

/* Does the pieces that no thread has begun, and waits for all other pieces. */
void lr_parallel_end(struct lr_parallel *loop);

/* One call that a thread of the pool makes. */
struct lr_pool_task {
    void (*body)(void *user, int worker);
    void *user;
    int worker;
};

/* A pool of threads. The library and each plugin contain a copy of parallel.c. Plugins use the library's pool, so that
 * each process has only one pool. */
struct lr_pool {
    /* Returns a thread that does the task, or NULL if none can be started. The thread is reserved for the caller until
     * `finish`. */
    struct lr_pool_thread *(*start)(const struct lr_pool_task *task);
    /* Waits until the task is done, or cancels it if it has not begun. The thread is then free for other callers. */
    void (*finish)(struct lr_pool_thread *thread);
};

/* Returns the pool that loops of this copy use: its own pool unless lr_pool_use has set another. */
const struct lr_pool *lr_pool_in_use(void);

/* Sets the pool of all loops that begin from now on. Any thread may call this function, also while loops run. */
void lr_pool_use(const struct lr_pool *pool);

struct lr_error_record;

/* A call in a separate thread. A struct of zeros has no call. The struct must not move while a call runs. */
struct lr_background {
    void (*body)(void *user);
    void *user;
    struct lr_error_record *employer; /* record for the errors of the call (base/log.h) */
    bool is_running;
    pthread_t thread;
};

/* Calls body(user) in a new thread, or in the calling thread if none can be started. No other call of `background` may
 * be running. */
void lr_background_start(struct lr_background *background, void (*body)(void *user), void *user);

/* Waits for the call, if there is one. */
void lr_background_wait(struct lr_background *background);

/* A call that a separate thread makes if the watch lasts longer than patience_s. The caller sets the first three fields
 * and zeroes all other fields. */
struct lr_watch {
    double patience_s;
    void (*act)(void *user); /* called by the watching thread after patience_s */
    void *user;
    bool is_running, is_over;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

/* Begins to watch. If no thread can be started, `act` is never called. */
void lr_watch_begin(struct lr_watch *watch);
void lr_watch_end(struct lr_watch *watch);
