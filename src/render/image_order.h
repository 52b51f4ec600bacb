/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images at the backend's place, in the grid's order, to and from where a projector of the `compute`
 * backend has them in its own: columns->image or pairs->image. */
#ifndef LR_RENDER_IMAGE_ORDER_H
#define LR_RENDER_IMAGE_ORDER_H

#include "render/points/points.h"

/* image: float32 [num_voxels] at compute->place. The context is current. */
lr_status lr_image_to_projector(struct lr_compute *compute, const lr_vector *image);
lr_status lr_image_from_projector(struct lr_compute *compute, lr_vector *image);

#endif
