/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A loop whose threads wait for each other. */
#pragma once

#include "base/parallel.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

/* No thread leaves before all have arrived, or before some seconds have passed. */
struct gathering {
    int threads;
    atomic_int here;
    atomic_bool is_late;
};

static void gather(void *user, int64_t begin, int64_t end)
{
    struct gathering *gathering = user;
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)begin;
    (void)end;
    atomic_fetch_add(&gathering->here, 1);
    for (int k = 0; atomic_load(&gathering->here) < gathering->threads; k++) {
        if (k > 20000) {
            atomic_store(&gathering->is_late, true);
            return;
        }
        nanosleep(&pause, NULL);
    }
}

/* True if this many threads work at the same time. */
static bool gather_threads(int threads)
{
    struct gathering gathering = {.threads = threads};
    atomic_init(&gathering.here, 0);
    atomic_init(&gathering.is_late, false);
    lr_parallel_for(threads, threads, 1, gather, &gathering);
    return !atomic_load(&gathering.is_late);
}
