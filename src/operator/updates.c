/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/updates.h"

#include "base/log.h"
#include "operator/scaling.h"

lr_status lr_updates_open(lr_operator *op, const struct lr_update_plan *plan, const struct lr_backend **backend)
{
    const struct lr_backend_updates *updates = op->backend.fns->updates;
    struct lr_update_plan whole = *plan;
    bool has_room = false;
    whole.has_factors = lr_has_factors(op);
    *backend = NULL;
    if (op->psf.is_on) /* between images and the backend, with each projection */
        return LR_OK;
    if (updates != NULL) LR_TRY(updates->open(op->backend.self, &whole, &has_room));
    *backend = has_room ? &op->backend : NULL;
    if (updates != NULL && !has_room) {
        lr_info(op->params.log,
                "half of the memory of %s does not hold the data of all subsets: they go there with "
                "each projection, which takes longer",
                op->info.device);
    }
    return LR_OK;
}

lr_status lr_updates_load(lr_operator *op, int subset, const struct lr_update_data *data)
{
    lr_vector factors = {0};
    struct lr_update_data whole = *data;
    whole.factors = NULL;
    lr_status status = LR_OK;
    if (lr_has_factors(op)) {
        status = lr_vector_create(
            &(lr_vector_params){.count = data->measured->count, .name = "factors of LORs", .log = op->params.log},
            &factors);
        status = status == LR_OK ? lr_vector_fill(&factors, 1.0) : status;
        status = status == LR_OK ? lr_scaling_apply_once(op, data->part, &factors) : status;
        whole.factors = &factors;
    }
    if (status == LR_OK) status = op->backend.fns->updates->load(op->backend.self, subset, &whole);
    lr_vector_destroy(&factors);
    return status;
}
