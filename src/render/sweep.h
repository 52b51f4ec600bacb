/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A projection's way through all voxels, batch by batch, for one window of LORs: the same for every
 * backend of this folder. */
#ifndef LR_RENDER_SWEEP_H
#define LR_RENDER_SWEEP_H

#include "operator/backend.h"
#include "render/plan.h"

struct lr_sweep {
    const struct lr_backend_params *params;
    struct lr_plan *plan;
    const char *what; /* for the progress: "projecting forward" */
    lr_status (*batch)(void *user, const struct lr_batch *batch);
    void *user;
};

/* The rows of a projection: all voxels of the grid. */
struct lr_rows lr_sweep_voxels(const struct lr_backend_params *params);

/* Hands every batch of the work on and reports progress, all windows together being 1. */
lr_status lr_sweep_run(const struct lr_sweep *sweep, const struct lr_plan_work *work);

#endif
