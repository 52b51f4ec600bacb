/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Time that the device takes for what its default stream is told between begin and end, summed over
 * laps: a gl_stopwatch (gl/timer.h) for CUDA. */
#ifndef LR_CUDA_WATCH_H
#define LR_CUDA_WATCH_H

#include <lr/log.h>

#include <cuda_runtime_api.h>
#include <stdint.h>

/* Laps that may be in flight: more than views of an iteration. */
enum { LR_CUDA_LAPS = 256 };

/* Zero is a watch of no laps. */
struct lr_cuda_watch {
    cudaEvent_t events[LR_CUDA_LAPS][2]; /* owned; made when a lap first needs them */
    int64_t begun, read;                 /* laps; of these, in `seconds` */
    double seconds;
};

void lr_cuda_watch_finish(struct lr_cuda_watch *watch);

/* Laps follow each other; each begin has its end before the next. Neither waits, unless the device
 * is LR_CUDA_LAPS behind. What fails is logged, and the lap counts as nothing. */
void lr_cuda_watch_begin(struct lr_cuda_watch *watch, const lr_log *log);
void lr_cuda_watch_end(struct lr_cuda_watch *watch, const lr_log *log);

/* Seconds of all laps since the last call of this; waits until the device is done with them. */
double lr_cuda_watch_read(struct lr_cuda_watch *watch, const lr_log *log);

#endif
