/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Where what gathers by bands read lies. No CUDA in it. */
#ifndef LR_CUDA_DIRECT_BAND_TABLES_H
#define LR_CUDA_DIRECT_BAND_TABLES_H

#include "cuda_interop/direct/memory.h"
#include "cuda_interop/direct/plans.h"

/* Places a view's lists and what is filled in, of which fill says how. fill: as lr_cuda_place_values has
 * left it. bands: back, forward. errors: as there. */
lr_status lr_cuda_place_bands(struct lr_cuda_memory *memory, const struct lr_cuda_band_plan *plan,
                              lr_cuda_view_fill *fill, lr_cuda_bands bands[2][LR_CUDA_BANDS_SHAPES]);

#endif
