/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the host prepares of views, whatever the variant. No CUDA in it. */
#ifndef LR_CUDA_DIRECT_PLANS_H
#define LR_CUDA_DIRECT_PLANS_H

#include "cuda_interop/direct/bands.h"
#include "cuda_interop/direct/cloud.h"
#include "cuda_interop/direct/columns.h"
#include "direct/backend.h"
#include "render/direct/direct.h"

struct lr_cuda_plan_params {
    const struct lr_direct_backend_params *backend;
    lr_cuda_layout layout;
    bool bands_work;     /* on the device */
    int64_t shared_room; /* bytes that a block may have */
};

/* Zero is none. */
struct lr_cuda_view_plan {
    struct lr_direct_shape shape;
    int num_rows;          /* of mSRval */
    int32_t (*offsets)[4]; /* owned, as in lr_cuda_value_fill, all three */
    double (*kernels)[2];
    float *samples;
    bool has_bands, has_columns, has_cloud; /* one of them, or none */
    struct lr_cuda_band_plan bands;
    struct lr_cuda_column_plan columns;
    struct lr_cuda_cloud_tables cloud;
};

/* How images lie, as passes take it. */
lr_cuda_layout lr_cuda_layout_of(const struct lr_direct_compute *compute);

/* Plans of some views, by as many threads as the backend may have. Columns do what bands
 * cannot.
 * errors: of any view, LR_FAILED and as lr_direct_shape_init; the plans hold nothing then. */
lr_status lr_cuda_view_plans_init(struct lr_cuda_view_plan *plans, const struct lr_cuda_plan_params *params,
                                  const int *views, int num_views);
void lr_cuda_view_plans_finish(struct lr_cuda_view_plan *plans, int num_views);

#endif
