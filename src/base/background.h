/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One call in a thread of its own, while whoever asked for it goes on. */
#ifndef LR_BASE_BACKGROUND_H
#define LR_BASE_BACKGROUND_H

#include <pthread.h>
#include <stdbool.h>

/* Zero: nothing runs. Must not move while something does. */
struct lr_background {
    void (*body)(void *user);
    void *user;
    bool is_running;
    pthread_t thread;
};

/* Nothing runs yet. Where no thread can be started, the call is over when this returns. */
void lr_background_start(struct lr_background *background, void (*body)(void *user), void *user);

/* Waits for the call, if there was any. */
void lr_background_wait(struct lr_background *background);

#endif
