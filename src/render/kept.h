/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images that stay on the device (lr_operator_keep_image), where the `compute` backend projects by
 * columns or by pairs: in the order of columns->image or pairs->image, which projections read and
 * write. */
#ifndef LR_RENDER_KEPT_H
#define LR_RENDER_KEPT_H

#include "render/compute.h"

/* `self` is a struct lr_compute; they make its context current themselves. */
extern const struct lr_kept_fns lr_compute_kept_fns;

/* Frees compute->kept; NULL is allowed. The context is current. */
void lr_kept_destroy(struct lr_kept *kept);

#endif
