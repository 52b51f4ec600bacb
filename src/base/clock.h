/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Clocks. */
#pragma once

#include <time.h>

/* Seconds on a clock that never goes back. */
static inline double lr_clock_seconds(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
