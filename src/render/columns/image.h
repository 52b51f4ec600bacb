/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images on their way between the grid's order and the columns' one, [across 1][across 0][along].
 */
#ifndef LR_RENDER_COLUMNS_IMAGE_H
#define LR_RENDER_COLUMNS_IMAGE_H

#include "render/columns/columns.h"
#include "render/fixed.h"

int64_t lr_columns_image_bytes(const struct lr_columns *columns);

/* To columns->image, and from there. image: [num_voxels] in the grid's order.
 * errors: LR_FAILED, LR_NO_DEVICE. */
lr_status lr_columns_upload_image(struct lr_columns *columns, const float *image);
lr_status lr_columns_read_image(const struct lr_columns *columns, float *image);

/* The same from sums in fixed point, one a voxel in the columns' order. */
lr_status lr_columns_read_sums(const struct lr_columns *columns, const struct lr_fixed *sums, float *image);

/* The same into columns->image, on the device. */
lr_status lr_columns_take_sums(struct lr_columns *columns, const struct lr_fixed *sums);

/* float32 [num_voxels] at the backend's place, in the grid's order, to and from columns->image. */
lr_status lr_columns_take_image(struct lr_columns *columns, const lr_vector *image);
lr_status lr_columns_give_image(struct lr_columns *columns, lr_vector *image);

#endif
