/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/facade.h"

#include "base/clock.h"
#include "base/log.h"
#include "operator/matrix.h"

#include <string.h>

lr_operator *lr_operator_create_among(const lr_operator_params *params, const struct lr_backend_choice *choices,
                                      int num_choices)
{
    lr_operator *op = lr_operator_alloc(params->log, params->progress);
    if (op == NULL) return NULL;
    const double start = lr_clock_seconds();
    if (lr_settings_complete(params, &op->log_filter.log, &op->grid, &op->params) != LR_OK) goto failed;
    op->params.progress = &op->progress_filter.progress;
    if (params->factors != NULL) op->factors = *params->factors;
    if (lr_choose_backend(op, params->backend, &(struct lr_choices){.list = choices, .count = num_choices}) != LR_OK)
        goto failed;
    /* The setting `rays` belongs to lines, which exist only in sampled mode. */
    if (params->rays > 0 && params->mode == LR_MODE_AUTO && op->params.mode == LR_MODE_EXACT) {
        lr_warn(op->params.log,
                "rays = %d is not used: solid angles are computed exactly unless mode sampled is asked for",
                params->rays);
    }

    if (strcmp(op->backend.fns->name, "compute") == 0 && !op->params.penetration)
        lr_coverage_warn_near(&op->grid, op->params.samples, op->params.scanner, op->params.log);
    const double projections = params->deterministic ? 0.0 : params->projections;
    const bool pays = params->store == LR_STORE_AUTO && lr_stored_pays(&op->backend, projections);
    const struct lr_stored_wish wish = {.required = params->store == LR_STORE_YES,
                                        .progress_filter = &op->progress_filter};
    struct lr_stored_size size = {0};
    if ((wish.required || pays) && lr_stored_wrap(&op->backend, &op->params, &wish, &size) != LR_OK) goto failed;

    lr_operator_describe(op, start);
    lr_operator_info *info = &op->info;
    info->mode = op->params.mode;
    info->penetration = op->params.penetration;
    info->rays = op->params.mode == LR_MODE_EXACT ? 0 : op->params.rays;
    for (int k = 0; k < 3; k++) info->samples[k] = op->params.samples[k];
    info->mu_steps = op->params.mu_steps;
    info->max_memory_bytes = op->params.max_memory_bytes;
    info->stored = size.stored;
    info->num_elements = size.num_elements;
    info->memory_bytes = size.memory_bytes;
    return op;

failed:
    lr_operator_destroy(op);
    return NULL;
}

lr_operator *lr_operator_create_sized(size_t given_bytes, const lr_operator_params *given)
{
    LR_TAKE(lr_operator_params, params, given, given_bytes);
    const struct lr_choices all = lr_all_choices(LR_CORRESPONDENCE);
    return lr_operator_create_among(params, all.list, all.count);
}

const lr_operator_info *lr_operator_get_info(const lr_operator *op)
{
    return &op->info;
}

lr_status lr_operator_prepare(lr_operator *op, bool of_lists)
{
    const struct lr_backend_fns *fns = op->backend.fns;
    return fns->prepare != NULL ? fns->prepare(op->backend.self, of_lists) : LR_OK;
}
