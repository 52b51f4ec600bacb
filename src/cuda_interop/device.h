/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The CUDA device of the calling thread, and the device's clock. */
#ifndef LR_CUDA_INTEROP_DEVICE_H
#define LR_CUDA_INTEROP_DEVICE_H

#include <cuda_runtime_api.h>
#include <lr/log.h>
#include <stdbool.h>
#include <stdint.h>

/* Makes a device current on this thread. *before: the thread's previous device, which lr_cuda_leave makes current
 * again. errors: LR_FAILED or LR_NO_DEVICE; the device is then not entered. */
lr_status lr_cuda_enter(int device, int *before, const lr_log *log);

/* Returns `status`. */
lr_status lr_cuda_leave(int device, int before, lr_status status);

/* The largest number of measured intervals that the device may not have finished; more than the views of an
 * iteration of the family `direct`. */
enum { LR_CUDA_MOST_LAPS = 256 };

/* Adds up the time that the device takes for a stream's work in some intervals. It does for CUDA what gl_stopwatch
 * (gl/timer.h) does for OpenGL. Set the first three members, and zero the rest. */
struct lr_cuda_watch {
    const char *what; /* for messages: "a clock" */
    const lr_log *log;
    int most_laps;                          /* intervals that may be unread at once, up to LR_CUDA_MOST_LAPS */
    cudaEvent_t laps[LR_CUDA_MOST_LAPS][2]; /* owned; made when an interval first needs them */
    bool is_begun;                          /* an interval has a begin, and no end yet */
    int64_t ended, read;                    /* intervals that have an end; intervals that are read */
    double last_s, all_s;                   /* time of the last interval that was read, and total time of all
                                             * intervals that were read */
};

/* Marks the begin (end = 0) or the end (1) of an interval on a stream. Intervals do not overlap. A begin without an
 * end is forgotten, and an end without a begin does nothing. A call waits
 * only if most_laps intervals are unread. errors, here and below: LR_FAILED or LR_NO_DEVICE. */
lr_status lr_cuda_watch_mark(struct lr_cuda_watch *watch, int end, cudaStream_t stream);

/* Reads the intervals that have not been read. waits: true = waits until the device has finished these intervals; false
 * = reads only the finished intervals. An interval that cannot be read counts as zero. */
lr_status lr_cuda_watch_read(struct lr_cuda_watch *watch, bool waits);
void lr_cuda_watch_finish(struct lr_cuda_watch *watch);

#endif
