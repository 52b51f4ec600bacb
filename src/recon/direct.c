/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Passes over the views of the family `direct`, block by block (paper 1 of lr/direct.h, section
 * 6.1). */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <limits.h>
#include <lr/direct.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct run {
    const lr_direct_recon_params *params;
    const lr_direct_info *info;
    int *order; /* owned [num_views] */
    int views_per_block, iterations;
    float *image; /* the caller's */
};

static lr_status check_order(const struct run *run, const int *order)
{
    const int count = run->info->num_views;
    bool *seen = lr_alloc(count, sizeof(*seen), "views", run->params->log);
    lr_status status = seen ? LR_OK : LR_FAILED;
    for (int k = 0; status == LR_OK && k < count; k++) {
        if (order[k] < 0 || order[k] >= count || seen[order[k]]) {
            status = lr_error(run->params->log, LR_USAGE,
                              "the order of the views has view %d where it is out of range or "
                              "there twice",
                              order[k]);
        } else {
            seen[order[k]] = true;
        }
    }
    free(seen);
    return status;
}

static lr_status check(const struct run *run)
{
    const lr_direct_recon_params *params = run->params;
    if (run->views_per_block < 1 || run->views_per_block > run->info->num_views ||
        run->iterations < 1) {
        return lr_error(params->log, LR_USAGE,
                        "%d iterations in blocks of %d of %d views: there must be at least one of "
                        "each, and no more than there are",
                        run->iterations, run->views_per_block, run->info->num_views);
    }
    if (params->iterations_before < 0 || params->iterations_before > INT_MAX - run->iterations) {
        return lr_error(params->log, LR_USAGE, "%d iterations before %d more",
                        params->iterations_before, run->iterations);
    }
    if (!(params->relaxation >= 0 && params->relaxation_fall >= 0 && isfinite(params->relaxation) &&
          isfinite(params->relaxation_fall))) {
        return lr_error(params->log, LR_USAGE,
                        "a relaxation of %g that falls by %g: neither may be negative",
                        params->relaxation, params->relaxation_fall);
    }
    return params->order != NULL ? check_order(run, params->order) : LR_OK;
}

static lr_status start(struct run *run)
{
    const int count = run->info->num_views;
    run->order = lr_alloc(count, sizeof(*run->order), "views", run->params->log);
    if (run->order == NULL) {
        return LR_FAILED;
    }
    for (int k = 0; k < count; k++) {
        run->order[k] = run->params->order != NULL ? run->params->order[k] : k;
    }
    for (int64_t k = 0; k < run->info->num_voxels; k++) {
        run->image[k] = run->params->initial != NULL ? run->params->initial[k] : 1.0f;
    }
    return lr_direct_set_image(run->params->direct, run->image);
}

static lr_status report(const struct run *run, int iteration, int first)
{
    char what[96];
    const int count = run->info->num_views;
    snprintf(what, sizeof(what), "iteration %d of %d, view %d of %d", iteration + 1,
             run->iterations, first + 1, count);
    return lr_progress_report(run->params->progress, what, iteration + (double)first / count,
                              run->iterations);
}

static lr_status pass_over_views(const struct run *run, int iteration)
{
    const lr_direct_recon_params *params = run->params;
    const int count = run->info->num_views;
    const double relaxation = params->relaxation == 0 ? 1 : params->relaxation;
    for (int first = 0, number = 0; first < count; first += run->views_per_block, number++) {
        const int rest = count - first;
        LR_TRY(report(run, iteration, first));
        LR_TRY(lr_direct_update(
            params->direct,
            &(lr_direct_block){
                .views = run->order + first,
                .num_views = rest < run->views_per_block ? rest : run->views_per_block,
                .rule = params->rule,
                .relaxation =
                    relaxation /
                    (1 + params->relaxation_fall * ((double)params->iterations_before + iteration)),
                .number = number,
            }));
    }
    return LR_OK;
}

static lr_status iterate(const struct run *run)
{
    const lr_direct_recon_params *params = run->params;
    lr_direct_update_seconds(params->direct);
    for (int k = 0; k < run->iterations; k++) {
        const double begin = lr_clock_seconds();
        LR_TRY(pass_over_views(run, k));
        lr_direct_iteration done = {.number = params->iterations_before + k + 1,
                                    .image = run->image};
        done.device_seconds = lr_direct_update_seconds(params->direct);
        done.seconds = lr_clock_seconds() - begin;
        if (params->iteration != NULL) {
            LR_TRY(lr_direct_get_image(params->direct, run->image));
            LR_TRY(params->iteration(params->user, &done));
        }
    }
    return LR_OK;
}

lr_status lr_direct_recon(const lr_direct_recon_params *params, float *image)
{
    struct run run = {
        .params = params,
        .info = lr_direct_get_info(params->direct),
        .views_per_block = params->views_per_block == 0 ? 1 : params->views_per_block,
        .iterations = params->iterations == 0 ? 1 : params->iterations,
        .image = image,
    };
    LR_TRY(check(&run));
    lr_status status = start(&run);
    if (status == LR_OK) {
        status = iterate(&run);
    }
    if (status == LR_OK || status == LR_CANCELLED) {
        const lr_status got = lr_direct_get_image(params->direct, image);
        status = got != LR_OK ? got : status;
    }
    free(run.order);
    return status;
}
