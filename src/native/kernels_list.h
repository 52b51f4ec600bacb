/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The instruction sets that there are kernels for; LR_NATIVE_AVX2 is defined where the compiler
 * makes those (CMakeLists.txt). */
#ifndef LR_NATIVE_KERNELS_LIST_H
#define LR_NATIVE_KERNELS_LIST_H

#include "native/kernels.h"

extern const struct lr_native_kernels lr_native_kernels_baseline;
extern const struct lr_native_kernels lr_native_kernels_avx2;

#endif
