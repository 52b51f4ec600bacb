/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Updates of the family `direct` in double on the host, for backends that keep nothing on a
 * device. */
#ifndef LR_OPERATOR_DIRECT_HOST_H
#define LR_OPERATOR_DIRECT_HOST_H

#include "direct/backend.h"

/* What has been loaded. Zero is nothing. */
struct lr_direct_host {
    struct lr_direct_host_view {
        float *counts, *additive, *factors; /* owned [num_voxels]; NULL = none */
    } * views;                              /* owned [num_views] */
    double **sensitivities;                 /* owned [num_views], by the blocks' numbers */
    double *image;                          /* owned [num_voxels] */
};

lr_status lr_direct_host_load(struct lr_direct_host *host, lr_direct *direct, int view,
                              const lr_direct_data *data, const lr_log *log);
lr_status lr_direct_host_set_image(struct lr_direct_host *host, lr_direct *direct,
                                   const float *image, const lr_log *log);
void lr_direct_host_get_image(const struct lr_direct_host *host, const lr_direct *direct,
                              float *image);
lr_status lr_direct_host_update(struct lr_direct_host *host, lr_direct *direct,
                                const struct lr_direct_step_params *step, const lr_log *log);
void lr_direct_host_finish(struct lr_direct_host *host, int num_views);

#endif
