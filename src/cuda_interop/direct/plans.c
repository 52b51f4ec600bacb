/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/plans.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "direct/tables.h"

#include <stdio.h>
#include <stdlib.h>

enum { VIEWS_OF_THREAD = 10 }; /* at least: threads begin slowly */

/* --- one view --- */

static lr_status list_values(struct lr_cuda_view_plan *plan, const lr_log *log)
{
    const struct lr_direct_shape *shape = &plan->shape;
    const int64_t count = shape->info.num_offsets, rows = plan->num_rows;
    plan->offsets = lr_alloc(count, sizeof(*plan->offsets), "mSR", log);
    plan->kernels = lr_alloc(rows, sizeof(*plan->kernels), "kernels", log);
    plan->samples = lr_alloc(rows * lr_direct_count_samples(shape), sizeof(*plan->samples), "measured profiles", log);
    if (plan->offsets == NULL || plan->kernels == NULL || plan->samples == NULL) return LR_FAILED;
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < 3; k++) plan->offsets[i][k] = shape->offsets[i][k];
    for (int row = 0; row < rows; row++) lr_direct_describe_kernel(shape, row, plan->kernels[row]);
    lr_direct_list_samples(shape, plan->samples);
    return LR_OK;
}

static lr_status plan_cloud(struct lr_cuda_view_plan *plan, const struct lr_cuda_plan_params *params, const lr_log *log)
{
    plan->has_cloud = true;
    return lr_cuda_cloud_init(&plan->cloud, &plan->shape, &params->layout, plan->num_rows, log);
}

static lr_status plan_columns(struct lr_cuda_view_plan *plan, const struct lr_cuda_plan_params *params,
                              const lr_log *log)
{
    plan->has_columns = true;
    return lr_cuda_column_plan_init(&plan->columns, &plan->shape, &params->layout, plan->num_rows, log);
}

/* Columns, where a slab is too wide. */
static lr_status plan_bands(struct lr_cuda_view_plan *plan, const struct lr_cuda_plan_params *params, const lr_log *log)
{
    if (params->bands_work) {
        LR_TRY(lr_cuda_band_plan_init(&plan->bands, &plan->shape, &params->layout, plan->num_rows, log));
        plan->has_bands = lr_cuda_band_plan_fits(&plan->bands, params->shared_room);
    }
    return plan->has_bands ? LR_OK : plan_columns(plan, params, log);
}

static lr_status plan_variant(struct lr_cuda_view_plan *plan, const struct lr_cuda_plan_params *params,
                              const lr_log *log)
{
    switch (params->backend->variant) {
    case LR_DIRECT_BANDS: return plan_bands(plan, params, log);
    case LR_DIRECT_COLUMNS: return plan_columns(plan, params, log);
    case LR_DIRECT_SHARED_MEMORY:
    case LR_DIRECT_TEXTURE_CACHE: return plan_cloud(plan, params, log);
    case LR_DIRECT_THREADS:
    case LR_DIRECT_INSTRUCTIONS:
    case LR_DIRECT_FASTEST: /* has been chosen */ break;
    }
    return LR_OK;
}

static lr_status plan_view(struct lr_cuda_view_plan *plan, const struct lr_cuda_plan_params *params, int view,
                           const lr_log *log)
{
    const struct lr_direct_backend_params *backend = params->backend;
    *plan = (struct lr_cuda_view_plan){0};
    LR_TRY(lr_direct_shape_init(&plan->shape, &(lr_direct_tables_params){.grid = &backend->grid,
                                                                         .view = backend->views[view],
                                                                         .kernel = backend->kernel,
                                                                         .log = log}));
    plan->num_rows = lr_direct_count_rows(&plan->shape);
    LR_TRY(list_values(plan, log));
    return plan_variant(plan, params, log);
}

static void finish_view(struct lr_cuda_view_plan *plan)
{
    lr_cuda_cloud_finish(&plan->cloud);
    lr_cuda_column_plan_finish(&plan->columns);
    lr_cuda_band_plan_finish(&plan->bands);
    free(plan->samples);
    free(plan->kernels);
    free(plan->offsets);
    lr_direct_shape_finish(&plan->shape);
    *plan = (struct lr_cuda_view_plan){0};
}

/* --- several --- */

/* Why a view failed: a log takes one sentence at a time, and not from whatever thread. */
struct reason {
    lr_status status;
    char sentence[512];
};

static void hear(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct reason *reason = user;
    if (level == LR_LOG_ERROR && status != LR_OK) snprintf(reason->sentence, sizeof(reason->sentence), "%s", sentence);
}

struct planning {
    struct lr_cuda_view_plan *plans;
    const struct lr_cuda_plan_params *params;
    const int *views;
    struct reason *reasons; /* of each view */
};

static void plan_views(void *user, int64_t begin, int64_t end, int worker)
{
    const struct planning *planning = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        struct reason *reason = &planning->reasons[k];
        const lr_log log = {hear, reason};
        reason->status = plan_view(&planning->plans[k], planning->params, planning->views[k], &log);
    }
}

/* The first view's that failed. */
static lr_status find_reason(const struct reason *reasons, int count, const lr_log *log)
{
    for (int k = 0; k < count; k++)
        if (reasons[k].status != LR_OK) return lr_error(log, reasons[k].status, "%s", reasons[k].sentence);
    return LR_OK;
}

lr_cuda_layout lr_cuda_layout_of(const struct lr_direct_compute *compute)
{
    const struct lr_direct_layout *from = &compute->layout;
    lr_cuda_layout layout = {.quads = from->quads};
    for (int k = 0; k < 3; k++) {
        layout.size[k] = from->size[k];
        layout.margin[k] = from->margin[k];
        layout.extent[k] = (k == 0 ? from->quads : from->size[k - 1]) + 2 * from->margin[k];
    }
    return layout;
}

lr_status lr_cuda_view_plans_init(struct lr_cuda_view_plan *plans, const struct lr_cuda_plan_params *params,
                                  const int *views, int num_views)
{
    const struct lr_direct_backend_params *backend = params->backend;
    struct planning planning = {.plans = plans,
                                .params = params,
                                .views = views,
                                .reasons = lr_alloc(num_views, sizeof(*planning.reasons), "plans", backend->log)};
    if (planning.reasons == NULL) return LR_FAILED;
    const int useful = (num_views + VIEWS_OF_THREAD - 1) / VIEWS_OF_THREAD;
    lr_parallel_for(backend->threads < useful ? backend->threads : useful, num_views, 1, plan_views, &planning);
    const lr_status status = find_reason(planning.reasons, num_views, backend->log);
    if (status != LR_OK) lr_cuda_view_plans_finish(plans, num_views);
    free(planning.reasons);
    return status;
}

void lr_cuda_view_plans_finish(struct lr_cuda_view_plan *plans, int num_views)
{
    for (int k = 0; k < num_views; k++) finish_view(&plans[k]);
}
