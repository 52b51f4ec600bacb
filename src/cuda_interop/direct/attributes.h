/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What kernels of projections take of the device: paper 1, table II. */
#ifndef LR_CUDA_DIRECT_ATTRIBUTES_H
#define LR_CUDA_DIRECT_ATTRIBUTES_H

#include <lr/direct.h>

/* Of the kernel that the last projection of this thread started, by the driver's own queries; the device
 * is current. errors: LR_USAGE before the first; LR_FAILED; logged. */
lr_status lr_cuda_find_attributes(lr_direct_attributes *attributes, const lr_log *log);

#endif
