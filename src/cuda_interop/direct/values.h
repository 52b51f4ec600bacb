/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What LORmap and mSRval of a view are filled in from, and where. No CUDA in it. */
#ifndef LR_CUDA_DIRECT_VALUES_H
#define LR_CUDA_DIRECT_VALUES_H

#include "cuda_interop/direct/memory.h"
#include "cuda_interop/direct/plans.h"

/* Places them. errors: LR_FAILED, not logged: the lists are others than those that were counted. */
lr_status lr_cuda_place_values(struct lr_cuda_memory *memory, const struct lr_cuda_view_plan *plan,
                               const lr_cuda_layout *layout, lr_cuda_view_fill *fill);

/* What launches for all of them have to reach. */
lr_cuda_fill_sizes lr_cuda_fill_sizes_of(const lr_cuda_view_fill *views, int num_views);

#endif
