/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/sweep.h"

#include "base/log.h"

struct lr_rows lr_sweep_voxels(const struct lr_backend_params *params)
{
    return (struct lr_rows){
        .grid = params->grid,
        .samples = {params->samples[0], params->samples[1], params->samples[2]},
        .end = lr_grid_num_voxels(params->grid),
    };
}

static lr_status report(const struct lr_sweep *sweep, const struct lr_pair_window *window, int64_t voxel)
{
    const double share = (double)voxel / (double)lr_grid_num_voxels(sweep->params->grid);
    const double done = (double)window->begin + share * (double)(window->end - window->begin);
    return lr_progress_report(sweep->params->progress, sweep->what, done / (double)window->num_pairs, 1.0);
}

lr_status lr_sweep_run(const struct lr_sweep *sweep, const struct lr_plan_work *work)
{
    struct lr_plan_cursor cursor = {0};
    struct lr_batch batch;
    while (lr_plan_next(sweep->plan, work, &cursor, &batch)) {
        LR_TRY(sweep->batch(sweep->user, &batch));
        LR_TRY(report(sweep, &work->window, cursor.row));
    }
    return LR_OK;
}
