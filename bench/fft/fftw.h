/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_FFT_FFTW_H
#define LR_FFT_FFTW_H

#include "fft/fft.h"

fft_convolve fft_fftw_convolve; /* FFTW 3, single precision, with threads */

#endif
