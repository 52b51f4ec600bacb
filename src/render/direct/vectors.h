/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of the family `direct` of vectors at the backend's place: images and histo-images go from
 * vectors to those with margins, and back, on the device (shaders/direct/exchange.comp). Vectors are in
 * float32, each on the host or at the place; the context is current. */
#ifndef LR_RENDER_DIRECT_VECTORS_H
#define LR_RENDER_DIRECT_VECTORS_H

#include "render/direct/direct.h"

/* vector: [num_voxels]; the functions may have the image. errors: LR_FAILED; LR_NO_DEVICE. */
lr_status lr_direct_put_vector(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                               const lr_vector *vector);
lr_status lr_direct_get_vector(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                               lr_vector *vector);

/* As struct lr_backend_fns has them. Values of single voxels pass through the host. */
lr_status lr_direct_vectors_forward(struct lr_direct_compute *compute, const lr_selection *part, const lr_vector *image,
                                    lr_vector *values);
lr_status lr_direct_vectors_back(struct lr_direct_compute *compute, const lr_selection *part, const lr_vector *values,
                                 lr_vector *image);

void lr_direct_exchange_finish(struct lr_direct_exchange *exchange);

#endif
