/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A clock for durations. */
#pragma once

#include <time.h>

/* Returns the time in seconds on a clock that never goes back. Only differences of two times have a meaning. */
static inline double lr_clock_seconds(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
