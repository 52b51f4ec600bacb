/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the host prepares of a view for gathers by columns. No CUDA in it. */
#ifndef LR_CUDA_DIRECT_COLUMNS_H
#define LR_CUDA_DIRECT_COLUMNS_H

#include "cuda_interop/direct/passes.h"
#include "direct/lattice.h"

/* All but the pass's pointers to the device. */
struct lr_cuda_column_plan {
    lr_cuda_columns pass;
    lr_cuda_column_step *steps; /* owned [steps] */
    int32_t *indices;           /* owned [steps][outputs][4], in mSR; -1 = none */
    int64_t num_weights;        /* of four floats each */
};

/* rows: of mSRval. errors: LR_FAILED; *plan holds nothing then. */
lr_status lr_cuda_column_plan_init(struct lr_cuda_column_plan *plan, const struct lr_direct_shape *shape,
                                   const lr_cuda_layout *layout, int rows, const lr_log *log);
void lr_cuda_column_plan_finish(struct lr_cuda_column_plan *plan);

/* Margins that gathers by columns reach: quads of slices, and columns along x and y. Bands
 * look up kernels within the latter. */
void lr_cuda_column_margins(const struct lr_direct_shape *shape, int margin[3]);

#endif
