/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Updates of the family `direct` on the device: data, image and what lies between stay there. */
#ifndef LR_RENDER_DIRECT_UPDATE_H
#define LR_RENDER_DIRECT_UPDATE_H

#include "render/direct/direct.h"

/* Slots of lr_direct_backend_fns; they make the context current themselves. */
lr_status lr_direct_compute_load(void *self, int view, const lr_direct_data *data);
lr_status lr_direct_compute_set_image(void *self, const float *image);
lr_status lr_direct_compute_get_image(void *self, float *image);
lr_status lr_direct_compute_update(void *self, const struct lr_direct_step_params *step);
double lr_direct_compute_update_seconds(void *self);
lr_status lr_direct_compute_time(void *self, const lr_direct_task *task, double *device_seconds);

/* Frees compute->resident, which may be NULL. The context is current. */
void lr_direct_resident_destroy(struct lr_direct_compute *compute);

#endif
