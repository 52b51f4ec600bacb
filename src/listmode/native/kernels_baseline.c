/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The kernels, compiled for every processor of the architecture. */
#define KERNELS lr_native_listmode_baseline
#define KERNELS_NAME "baseline"

#include "listmode/native/kernels_body.h"
