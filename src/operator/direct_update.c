/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Updates of the family `direct`: checked here, done on the device or on the host. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "direct/tables.h"
#include "operator/direct_facade.h"

#include <math.h>
#include <stdlib.h>

static lr_status check_values(const lr_direct *direct, const char *what, const float *values,
                              int64_t count)
{
    for (int64_t k = 0; values != NULL && k < count; k++) {
        if (!(isfinite(values[k]) && values[k] >= 0)) {
            return lr_error(direct->log, LR_BAD_INPUT,
                            "%s: voxel %lld has the value %g: values are finite and not negative",
                            what, (long long)k, (double)values[k]);
        }
    }
    return LR_OK;
}

static lr_status check_view_number(const lr_direct *direct, int view)
{
    if (view < 0 || view >= direct->info.num_views) {
        return lr_error(direct->log, LR_USAGE, "view %d does not exist: there are %d, from 0 on",
                        view, direct->info.num_views);
    }
    return LR_OK;
}

static float largest(const float *values, int64_t count)
{
    float most = values == NULL ? 1.0f : 0.0f;
    for (int64_t k = 0; values != NULL && k < count; k++) {
        most = fmaxf(most, values[k]);
    }
    return most;
}

lr_status lr_direct_load(lr_direct *direct, int view, const lr_direct_data *data)
{
    const int64_t count = direct->info.num_voxels;
    LR_TRY(check_view_number(direct, view));
    if (data->counts == NULL) {
        return lr_error(direct->log, LR_USAGE, "view %d has no counts", view);
    }
    LR_TRY(check_values(direct, "counts", data->counts, count));
    LR_TRY(check_values(direct, "the additive term", data->additive, count));
    LR_TRY(check_values(direct, "factors", data->factors, count));
    const struct lr_direct_backend *backend = &direct->backend;
    direct->max_factors[view] = -1;
    LR_TRY(backend->fns->load != NULL
               ? backend->fns->load(backend->self, view, data)
               : lr_direct_host_load(&direct->host, direct, view, data, direct->log));
    direct->max_factors[view] = largest(data->factors, count);
    return LR_OK;
}

lr_status lr_direct_set_image(lr_direct *direct, const float *image)
{
    const struct lr_direct_backend *backend = &direct->backend;
    LR_TRY(check_values(direct, "the image", image, direct->info.num_voxels));
    LR_TRY(backend->fns->load != NULL
               ? backend->fns->set_image(backend->self, image)
               : lr_direct_host_set_image(&direct->host, direct, image, direct->log));
    direct->has_image = true;
    return LR_OK;
}

static lr_status check_image(const lr_direct *direct)
{
    return direct->has_image ? LR_OK
                             : lr_error(direct->log, LR_USAGE, "no image has been set to work on");
}

lr_status lr_direct_get_image(lr_direct *direct, float *image)
{
    const struct lr_direct_backend *backend = &direct->backend;
    LR_TRY(check_image(direct));
    if (backend->fns->load != NULL) {
        return backend->fns->get_image(backend->self, image);
    }
    lr_direct_host_get_image(&direct->host, direct, image);
    return LR_OK;
}

static lr_status check_block(const lr_direct *direct, const lr_direct_block *block)
{
    LR_TRY(check_image(direct));
    if (block->num_views < 1 || block->number < 0 || block->number >= direct->info.num_views) {
        return lr_error(direct->log, LR_USAGE,
                        "a block of %d views with the number %d: at least one view is needed, and "
                        "a number from 0 to %d",
                        block->num_views, block->number, direct->info.num_views - 1);
    }
    if (!(block->relaxation >= 0 && isfinite(block->relaxation))) {
        return lr_error(direct->log, LR_USAGE, "a relaxation of %g: it must be positive",
                        block->relaxation);
    }
    for (int k = 0; k < block->num_views; k++) {
        LR_TRY(check_view_number(direct, block->views[k]));
        if (direct->max_factors[block->views[k]] < 0) {
            return lr_error(direct->log, LR_USAGE, "no data have been loaded for view %d",
                            block->views[k]);
        }
    }
    return LR_OK;
}

lr_status lr_direct_update(lr_direct *direct, const lr_direct_block *block)
{
    const struct lr_direct_backend *backend = &direct->backend;
    double factors = 0;
    LR_TRY(check_block(direct, block));
    for (int k = 0; k < block->num_views; k++) {
        factors += (double)direct->max_factors[block->views[k]];
    }
    const double relaxation = block->relaxation == 0 ? 1 : block->relaxation;
    const struct lr_direct_step_params step = {.views = block->views,
                                               .num_views = block->num_views,
                                               .number = block->number,
                                               .rule = block->rule,
                                               .lambda = factors > 0 ? relaxation / factors : 0};
    return backend->fns->load != NULL
               ? backend->fns->update(backend->self, &step)
               : lr_direct_host_update(&direct->host, direct, &step, direct->log);
}

double lr_direct_update_seconds(lr_direct *direct)
{
    const struct lr_direct_backend *backend = &direct->backend;
    return backend->fns->load != NULL ? backend->fns->update_seconds(backend->self) : 0;
}

/* --- timing --- */

static lr_status count_offsets(const lr_direct *direct, const lr_direct_task *task, int64_t *count)
{
    *count = 0;
    for (int k = 0; k < task->num_views; k++) {
        struct lr_direct_shape shape;
        LR_TRY(check_view_number(direct, task->views[k]));
        LR_TRY(lr_direct_shape_init(
            &shape, &(lr_direct_tables_params){.grid = &direct->info.grid,
                                               .view = direct->views[task->views[k]],
                                               .kernel = direct->kernel,
                                               .log = direct->log}));
        *count += shape.info.num_offsets;
        lr_direct_shape_finish(&shape);
    }
    return LR_OK;
}

/* By projections of a copy of the image. Tables of one view each are built and thrown away. */
static lr_status time_on_host(lr_direct *direct, const lr_direct_task *task)
{
    const int64_t count = direct->info.num_voxels;
    double *out = lr_alloc(count, sizeof(*out), "an image", direct->log);
    lr_status status = out ? LR_OK : LR_FAILED;
    for (int k = 0; status == LR_OK && k < task->num_views; k++) {
        const int view = task->views[k];
        if (task->work == LR_DIRECT_WORK_TABLES) {
            lr_direct_tables *tables =
                lr_direct_tables_create(&(lr_direct_tables_params){.grid = &direct->info.grid,
                                                                   .view = direct->views[view],
                                                                   .kernel = direct->kernel,
                                                                   .log = direct->log});
            status = tables ? LR_OK : LR_FAILED;
            lr_direct_tables_destroy(tables);
        } else {
            status = (task->work == LR_DIRECT_WORK_FORWARD
                          ? lr_direct_forward_f64
                          : lr_direct_back_f64)(direct, view, direct->host.image, out);
        }
    }
    free(out);
    return status;
}

lr_status lr_direct_time(lr_direct *direct, const lr_direct_task *task, lr_direct_timing *timing)
{
    const struct lr_direct_backend *backend = &direct->backend;
    *timing = (lr_direct_timing){0};
    LR_TRY(check_image(direct));
    LR_TRY(count_offsets(direct, task, &timing->num_offsets));
    const double begin = lr_clock_seconds();
    const lr_status status = backend->fns->time != NULL
                                 ? backend->fns->time(backend->self, task, &timing->device_s)
                                 : time_on_host(direct, task);
    timing->wall_s = lr_clock_seconds() - begin;
    return status;
}
