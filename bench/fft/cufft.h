/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_FFT_CUFFT_H
#define LR_FFT_CUFFT_H

#include "fft/fft.h"

fft_convolve fft_cufft_convolve; /* single precision, on the current CUDA device */

bool fft_cufft_has_device(void);

#endif
