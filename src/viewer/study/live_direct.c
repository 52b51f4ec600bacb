/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/live_direct.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static const char *name_backend(const char *wished)
{
    static const char *const names[] = {"auto", "cpu", "compute", "cuda"};
    for (size_t k = 0; wished != NULL && k < sizeof(names) / sizeof(names[0]); k++)
        if (strcmp(names[k], wished) == 0) return names[k];
    return names[0];
}

static lr_status take_views(struct live_direct *direct, const lr_view *views, const lr_log *log)
{
    direct->views = lr_alloc(direct->num_views, sizeof(*direct->views), "views", log);
    if (direct->views == NULL) return LR_FAILED;
    if (views != NULL) memcpy(direct->views, views, (size_t)direct->num_views * sizeof(*direct->views));
    return LR_OK;
}

static lr_status take_histo(struct live_direct *direct, const lr_histo_images *histo, const lr_log *log)
{
    const int64_t count = histo->num_views * lr_grid_num_voxels(&histo->grid);
    direct->num_views = histo->num_views;
    LR_TRY(take_views(direct, histo->views, log));
    direct->data = lr_lor_data_create(&(lr_lors){.count = count}, log);
    if (direct->data == NULL) return LR_FAILED;
    memcpy(direct->data->values, histo->values, (size_t)count * sizeof(*histo->values));
    return LR_OK;
}

static lr_status make_views(struct live_direct *direct, const lr_view_set *wished, const lr_log *log)
{
    lr_view_set set;
    LR_TRY(lr_view_set_complete(wished, &set, log));
    direct->num_views = lr_view_set_count(&set);
    LR_TRY(take_views(direct, NULL, log));
    for (int k = 0; k < direct->num_views; k++) direct->views[k] = lr_view_set_at(&set, k);
    return LR_OK;
}

lr_status live_direct_take(struct live_direct *direct, const struct live_request *request, const lr_log *log)
{
    *direct = (struct live_direct){.kernel = request->kernel, .backend = name_backend(request->backend)};
    return request->histo != NULL && !request->simulates ? take_histo(direct, request->histo, log)
                                                         : make_views(direct, &request->views, log);
}

void live_direct_finish(struct live_direct *direct)
{
    lr_lor_data_destroy(direct->data);
    free(direct->views);
    *direct = (struct live_direct){0};
}

lr_status live_direct_create(const struct live_direct *direct, const lr_operator_params *params, lr_operator **op)
{
    LR_TRY(lr_progress_report(params->progress, "preparing the projector", 0, 1));
    *op = lr_direct_create(&(lr_direct_params){.grid = params->grid,
                                               .views = direct->views,
                                               .num_views = direct->num_views,
                                               .kernel = direct->kernel,
                                               .backend = direct->backend,
                                               .shared = params->shared,
                                               .log = params->log,
                                               .progress = params->progress});
    return *op != NULL ? LR_OK : LR_FAILED;
}
