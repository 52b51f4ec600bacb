/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The kernels, compiled with the flags for AVX2 (CMakeLists.txt). */
#define KERNELS lr_native_kernels_avx2
#define KERNELS_NAME "AVX2"

#include "correspondence/native/kernels.h"

#include "correspondence/native/kernels_body.h"
