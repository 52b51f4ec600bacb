/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The CUDA device of the calling thread, and the device's clock. */
#pragma once

#include <cuda_runtime_api.h>
#include <lr/log.h>
#include <stdbool.h>
#include <stdint.h>

/* Makes a device current on this thread. *before: the thread's previous device, which lr_cuda_leave makes current
 * again. errors: LR_FAILED or LR_NO_DEVICE; the device is then not entered. */
lr_status lr_cuda_enter(int device, int *before, const lr_log *log);

/* Makes the previous device current again, and returns `status`. */
lr_status lr_cuda_leave(int device, int before, lr_status status);

/* The largest number of intervals whose times have not been read yet. It is larger than the number of views of an
 * iteration of the family `direct`. */
enum { LR_CUDA_MOST_LAPS = 256 };

/* Adds up the time that the device takes for a stream's work in some intervals. This is the CUDA version of
 * gl_stopwatch (gl/timer.h). The caller sets the first three members and zeroes the rest. */
struct lr_cuda_watch {
    const char *what; /* for messages: "a clock" */
    const lr_log *log;
    int most_laps;                          /* intervals that may be unread at once, up to LR_CUDA_MOST_LAPS */
    cudaEvent_t laps[LR_CUDA_MOST_LAPS][2]; /* owned; made when an interval first needs them */
    bool is_begun;                          /* number of intervals that have ended, and number that were read */
    int64_t ended, read;                    /* numbers of intervals that have ended, and of those that were read */
    double last_s, all_s;                   /* time of the last interval that was read, and total time of all
                                             * intervals that were read */
};

/* Marks the beginning (end = 0) or the end (end = 1) of an interval on a stream. Intervals do not overlap. A begin
 * without an end is forgotten, and an end without a begin does nothing. A call waits only if most_laps intervals are
 * unread. errors of this function and those below: LR_FAILED or LR_NO_DEVICE. */
lr_status lr_cuda_watch_mark(struct lr_cuda_watch *watch, int end, cudaStream_t stream);

/* Reads the intervals that have not been read. waits: true = waits until the device has finished them; false = reads
 * only those that are finished. An interval that cannot be read counts as zero. */
lr_status lr_cuda_watch_read(struct lr_cuda_watch *watch, bool waits);
void lr_cuda_watch_finish(struct lr_cuda_watch *watch);
