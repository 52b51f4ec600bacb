/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Threads that do one call after the other. In between they wait, as starting a thread takes longer than many a
 * call; those that have waited for a second end. */
#ifndef LR_BASE_POOL_H
#define LR_BASE_POOL_H

struct lr_pool_thread;

/* What it calls, once. */
struct lr_pool_task {
    void (*body)(void *user, int worker);
    void *user;
    int worker;
};

/* A thread that is about to do the task; NULL: none can be started. The caller has it until lr_pool_finish. */
struct lr_pool_thread *lr_pool_start(const struct lr_pool_task *task);

/* Waits until the task is done, or sees to it that it does not begin any more. The thread is the caller's no more. */
void lr_pool_finish(struct lr_pool_thread *thread);

#endif
