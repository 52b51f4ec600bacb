/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A rank whose device is lost tells the others when they meet. They may never come: what they wait for on
 * their own devices is what the lost one was to send. After a while a thread ends them all. */
#ifndef LR_DIST_WATCH_H
#define LR_DIST_WATCH_H

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
