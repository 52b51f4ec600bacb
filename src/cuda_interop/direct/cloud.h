/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the host prepares of a view for the gathers of paper 2 of lr/direct.h: projection mask, sorted
 * cloud and separable tables. No CUDA in it. */
#ifndef LR_CUDA_DIRECT_CLOUD_H
#define LR_CUDA_DIRECT_CLOUD_H

#include "cuda_interop/direct/passes.h"
#include "direct/tables.h"

/* All but the pass's pointers to the device. */
struct lr_cuda_cloud_tables {
    lr_cuda_cloud pass;
    int32_t (*points)[4]; /* owned, as in the pass, all of these */
    float *factors, *profiles;
    int32_t *shift;
};

/* What time of flight and axial distance give of an offset's value: the rest is its kernel's profile
 * across the line. */
double lr_cuda_cloud_factor(const struct lr_direct_shape *shape, const int32_t offset[3]);

/* rows: of mSRval. errors: LR_FAILED; *tables holds nothing then. */
lr_status lr_cuda_cloud_init(struct lr_cuda_cloud_tables *tables, const struct lr_direct_shape *shape,
                             const lr_cuda_layout *layout, int rows, const lr_log *log);
void lr_cuda_cloud_finish(struct lr_cuda_cloud_tables *tables);

#endif
