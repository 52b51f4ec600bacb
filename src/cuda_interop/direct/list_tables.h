/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Where the lists of columns and clouds lie, those of one view (band_tables.h has those of
 * bands). tables: LORmap and mSRval are placed; its passes get all that they read. No CUDA in it. */
#ifndef LR_CUDA_DIRECT_LIST_TABLES_H
#define LR_CUDA_DIRECT_LIST_TABLES_H

#include "cuda_interop/direct/memory.h"
#include "cuda_interop/direct/plans.h"
#include "cuda_interop/direct/tables.h"

/* indices: of the taps of steps, which the device fills weights in from. errors: LR_FAILED,
 * not logged, where there is no room, here and below. */
lr_status lr_cuda_place_columns(struct lr_cuda_memory *memory, const struct lr_cuda_column_plan *plan,
                                struct lr_cuda_tables *tables, const int32_t **indices);

lr_status lr_cuda_place_cloud(struct lr_cuda_memory *memory, const struct lr_cuda_cloud_tables *host,
                              struct lr_cuda_tables *tables);

#endif
