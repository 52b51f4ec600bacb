/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Updates of the family `direct` on the device: data, image and what lies between stay there. */
#ifndef LR_RENDER_DIRECT_UPDATE_H
#define LR_RENDER_DIRECT_UPDATE_H

#include "render/direct/direct.h"

/* They make the context current themselves. */
extern const struct lr_backend_updates lr_direct_compute_updates;

/* lr_direct_backend.time */
lr_status lr_direct_compute_time(void *self, const lr_direct_task *task, double *device_seconds);

/* Frees compute->resident, which may be NULL. The context is current. */
void lr_direct_resident_destroy(struct lr_direct_compute *compute);

#endif
