/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What live reconstruction by the family `direct` has beside the rest: views, and counts of histo-images
 * that are open. */
#ifndef LR_VIEWER_LIVE_DIRECT_H
#define LR_VIEWER_LIVE_DIRECT_H

#include "viewer/study/live.h"

/* Its own copies: what the request names may be gone before the job ends. */
struct live_direct {
    lr_view *views; /* owned [num_views] */
    int num_views;
    lr_lor_data *data; /* owned; NULL = counts are to be drawn */
    lr_direct_kernel kernel;
    const char *backend;
};

/* errors: LR_USAGE for a set of views that cannot be; LR_FAILED. Zero, or finish it in any case. */
lr_status live_direct_take(struct live_direct *direct, const struct live_request *request, const lr_log *log);
void live_direct_finish(struct live_direct *direct);

/* The operator; of the params grid, shared, log and progress are read. errors: LR_CANCELLED; as
 * lr_direct_create, logged. */
lr_status live_direct_create(const struct live_direct *direct, const lr_operator_params *params, lr_operator **op);

#endif
