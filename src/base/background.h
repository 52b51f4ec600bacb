/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Two kinds of calls in a separate thread: one runs while its caller goes on, the other is made only if some work takes
 * too long. */
#ifndef LR_BASE_BACKGROUND_H
#define LR_BASE_BACKGROUND_H

#include <pthread.h>
#include <stdbool.h>

struct lr_error_record;

/* A call in a thread of its own. A struct of zeros has no call. The struct must not move while a call runs. */
struct lr_background {
    void (*body)(void *user);
    void *user;
    struct lr_error_record *employer; /* the record that receives its errors (base/log.h) */
    bool is_running;
    pthread_t thread;
};

/* Calls body(user) in a new thread, or in the calling thread if none can be started. No other call of `background` may
 * be running. */
void lr_background_start(struct lr_background *background, void (*body)(void *user), void *user);

/* Waits for the call, if there is one. */
void lr_background_wait(struct lr_background *background);

/* A call that is made if the watch lasts too long. The caller sets the first three fields and zeroes all other
 * fields. */
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
