/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Exchanges of processes out of the memory of CUDA devices. */
#ifndef LR_CUDA_LINK_H
#define LR_CUDA_LINK_H

#include "vector/kinds.h"

extern const struct lr_link_fns lr_cuda_link_fns;

#endif
