/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A call that is made, in a thread of its own, unless something has ended in time. */
#ifndef LR_BASE_WATCH_H
#define LR_BASE_WATCH_H

#include <pthread.h>
#include <stdbool.h>

struct lr_watch {
    double patience_s;
    void (*act)(void *user); /* in the thread, where the watch has not ended by then */
    void *user;
    bool is_running, is_over;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

/* Set the first three; the rest is zero. Where no thread can be started, nobody watches. */
void lr_watch_begin(struct lr_watch *watch);
void lr_watch_end(struct lr_watch *watch);

#endif
