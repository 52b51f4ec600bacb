/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Medians of runs, alike for every library. */
#ifndef LR_FFT_MEASURE_H
#define LR_FFT_MEASURE_H

#include "fft/fft.h"

/* Convolves all volumes once. taken: of all of them. */
typedef lr_status fft_run(void *user, struct fft_timing *taken);

/* timing: the first run's, which counts only where there is no time for others; becomes medians, of
 * one volume. */
lr_status fft_measure(const struct fft_job *job, fft_run *run, void *user, struct fft_timing *timing);

#endif
