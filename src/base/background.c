/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/background.h"

#include <time.h>

static void *call(void *user)
{
    const struct lr_background *background = user;
    background->body(background->user);
    return NULL;
}

void lr_background_start(struct lr_background *background, void (*body)(void *user), void *user)
{
    background->body = body;
    background->user = user;
    background->is_running = pthread_create(&background->thread, NULL, call, background) == 0;
    if (!background->is_running) body(user);
}

void lr_background_wait(struct lr_background *background)
{
    if (background->is_running) pthread_join(background->thread, NULL);
    background->is_running = false;
}

/* --- watches --- */

static void *wait_and_act(void *user)
{
    struct lr_watch *watch = user;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const long nanoseconds = until.tv_nsec + (long)(1e9 * (watch->patience_s - (double)(long)watch->patience_s));
    until.tv_sec += (time_t)watch->patience_s + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    int result = 0;
    pthread_mutex_lock(&watch->mutex);
    while (!watch->is_over && result == 0) result = pthread_cond_timedwait(&watch->changed, &watch->mutex, &until);
    const bool is_over = watch->is_over;
    pthread_mutex_unlock(&watch->mutex);
    if (!is_over) watch->act(watch->user);
    return NULL;
}

void lr_watch_begin(struct lr_watch *watch)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_cond_init(&watch->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    watch->is_over = false;
    watch->is_running = pthread_create(&watch->thread, NULL, wait_and_act, watch) == 0;
}

void lr_watch_end(struct lr_watch *watch)
{
    pthread_mutex_lock(&watch->mutex);
    watch->is_over = true;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->mutex);
    if (watch->is_running) pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->mutex);
}
