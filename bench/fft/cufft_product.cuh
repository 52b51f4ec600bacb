/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The part of a product with a spectrum that one thread computes. It is compiled for the device, and for the processor,
 * where a test runs it. */
#ifndef LR_FFT_CUFFT_PRODUCT_CUH
#define LR_FFT_CUFFT_PRODUCT_CUH

#include "fft/cufft_product.h"

__device__ inline void multiply_bin(const fft_product &product, int volume, int64_t bin)
{
    if (bin < product.bins) {
        float2 *value = product.values + volume * product.bins + bin;
        const float2 a = *value, b = product.spectrum[bin];
        value->x = product.scale * (a.x * b.x - a.y * b.y);
        value->y = product.scale * (a.x * b.y + a.y * b.x);
    }
}

#endif
