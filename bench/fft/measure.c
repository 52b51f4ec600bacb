/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "fft/measure.h"

#include "base/log.h"

#include <stdlib.h>

enum { MOST_RUNS = 101 };

static int compare_numbers(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double find_median(double *runs, int count)
{
    qsort(runs, (size_t)count, sizeof(*runs), compare_numbers);
    return runs[count / 2];
}

lr_status fft_measure(const struct fft_job *job, fft_run *run, void *user, struct fft_timing *timing)
{
    double wall_s[MOST_RUNS] = {timing->wall_s}, device_s[MOST_RUNS] = {timing->device_s};
    double spent_s = timing->wall_s;
    int count = 0;
    while (count < job->repeat && count < MOST_RUNS && spent_s < job->seconds) {
        struct fft_timing taken = {0};
        LR_TRY(run(user, &taken));
        spent_s += taken.wall_s;
        wall_s[count] = taken.wall_s;
        device_s[count++] = taken.device_s;
    }
    count = count > 0 ? count : 1;
    timing->wall_s = find_median(wall_s, count) / job->volumes;
    timing->device_s = find_median(device_s, count) / job->volumes;
    return LR_OK;
}
