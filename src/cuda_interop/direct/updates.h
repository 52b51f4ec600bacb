/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The updates of render/ (render/direct/direct.h) on CUDA: they take the images that they work on, which
 * stay out, and neither wait nor copy. */
#ifndef LR_CUDA_DIRECT_UPDATES_H
#define LR_CUDA_DIRECT_UPDATES_H

#include "cuda_interop/direct/passes.h"
#include "render/direct/direct.h"

/* As lr_direct_functions.discrepancy and .change have it. */
lr_status lr_cuda_find_discrepancy(const struct lr_direct_compute *compute, int what,
                                   const struct lr_direct_view_data *data, const struct lr_direct_image *histo);
lr_status lr_cuda_change_image(const struct lr_direct_compute *compute, const struct lr_direct_change *change,
                               const struct lr_direct_image *image);

#endif
