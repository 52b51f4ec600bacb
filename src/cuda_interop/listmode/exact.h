/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the passes of exact elements read of the scanner, on the host and on the device. */
#ifndef LR_CUDA_LISTMODE_EXACT_H
#define LR_CUDA_LISTMODE_EXACT_H

#include "cuda_interop/listmode/tables.h"

/* Of the host, zero with other kernels. Finish it in any case.
 * errors: LR_USAGE for more sample points than kernels count; LR_FAILED without memory. */
lr_status lr_cuda_exact_init(lr_cuda_list_exact *exact, const struct lr_listmode_backend_params *params);
void lr_cuda_exact_finish(lr_cuda_list_exact *exact);

/* The same on the device, in blocks of `memory`. errors: LR_FAILED. */
lr_status lr_cuda_exact_copy(lr_cuda_list_exact *to, const lr_cuda_list_exact *from, const lr_scanner *scanner,
                             struct lr_cuda_list_memory *memory);

#endif
