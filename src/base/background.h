/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Calls in a thread of their own: one that runs while its caller goes on, and one that is made only if something
 * takes too long. */
#ifndef LR_BASE_BACKGROUND_H
#define LR_BASE_BACKGROUND_H

#include <pthread.h>
#include <stdbool.h>

struct lr_error_record;

/* A call; zero means that none runs. It must not move while a call runs. */
struct lr_background {
    void (*body)(void *user);
    void *user;
    struct lr_error_record *employer; /* the record that receives its errors (base/log.h) */
    bool is_running;
    pthread_t thread;
};

/* Makes the call in a thread. If no thread can be started, it makes the call itself before it returns. No other call
 * may be running. */
void lr_background_start(struct lr_background *background, void (*body)(void *user), void *user);

/* Waits for the call, if there is one. */
void lr_background_wait(struct lr_background *background);

/* A call that is made unless the watch ends in time. Set the first three fields, zero the rest. */
struct lr_watch {
    double patience_s;
    void (*act)(void *user); /* called by the watching thread after patience_s */
    void *user;
    bool is_running, is_over;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

/* Begins to watch; if no thread can be started, the call is never made. */
void lr_watch_begin(struct lr_watch *watch);
void lr_watch_end(struct lr_watch *watch);

#endif
