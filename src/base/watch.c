/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/watch.h"

#include <time.h>

static struct timespec deadline_of(const struct lr_watch *watch)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const long nanoseconds = until.tv_nsec + (long)(1e9 * (watch->patience_s - (double)(long)watch->patience_s));
    until.tv_sec += (time_t)watch->patience_s + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    return until;
}

static void *run(void *user)
{
    struct lr_watch *watch = user;
    const struct timespec until = deadline_of(watch);
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
    watch->is_running = pthread_create(&watch->thread, NULL, run, watch) == 0;
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
