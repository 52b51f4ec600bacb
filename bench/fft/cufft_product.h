/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * This header is for C and for CUDA. C sees CUDA's float2 as an opaque type. */
#ifndef LR_FFT_CUFFT_PRODUCT_H
#define LR_FFT_CUFFT_PRODUCT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#else
typedef struct float2 float2;
#endif

/* The product of transformed volumes with a spectrum and a scale. All arrays are on the device. */
typedef struct fft_product {
    float2 *values;         /* [volumes][bins], real and imaginary part */
    const float2 *spectrum; /* [bins] */
    int64_t bins;
    int volumes;
    float scale;
} fft_product;

/* Starts the product without waiting for its end. Returns a cudaError_t. */
int fft_launch_product(const fft_product *product);

#ifdef __cplusplus
}
#endif

#endif
