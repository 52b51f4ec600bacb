/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

double lr_clock_seconds(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double lr_clock_waited_seconds(void)
{
    double ran_ns = 0.0, waited_ns = 0.0;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (file == NULL) return 0.0;
    const int found = fscanf(file, "%lf %lf", &ran_ns, &waited_ns);
    fclose(file);
    return found == 2 ? 1e-9 * waited_ns : 0.0;
}
