/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The kernels, compiled with the flags for AVX2 (CMakeLists.txt). */
#define KERNELS lr_native_listmode_avx2
#define KERNELS_NAME "AVX2"

#include "listmode/native/kernels_body.h"
