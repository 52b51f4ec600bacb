/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/direct_host.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static lr_status copy(float **kept, const float *values, int64_t count, const lr_log *log)
{
    free(*kept);
    *kept = NULL;
    if (values == NULL) {
        return LR_OK;
    }
    *kept = lr_alloc(count, sizeof(float), "a histo-image", log);
    if (*kept == NULL) {
        return LR_FAILED;
    }
    memcpy(*kept, values, (size_t)count * sizeof(float));
    return LR_OK;
}

static void forget_sensitivities(struct lr_direct_host *host, int num_views)
{
    for (int k = 0; k < num_views && host->sensitivities != NULL; k++) {
        free(host->sensitivities[k]);
        host->sensitivities[k] = NULL;
    }
}

lr_status lr_direct_host_load(struct lr_direct_host *host, lr_direct *direct, int view,
                              const lr_direct_data *data, const lr_log *log)
{
    const lr_direct_info *info = lr_direct_get_info(direct);
    if (host->views == NULL) {
        host->views = lr_alloc(info->num_views, sizeof(*host->views), "histo-images", log);
        host->sensitivities = lr_alloc(info->num_views, sizeof(double *), "histo-images", log);
    }
    if (host->views == NULL || host->sensitivities == NULL) {
        return LR_FAILED;
    }
    forget_sensitivities(host, info->num_views);
    struct lr_direct_host_view *kept = &host->views[view];
    LR_TRY(copy(&kept->counts, data->counts, info->num_voxels, log));
    LR_TRY(copy(&kept->additive, data->additive, info->num_voxels, log));
    return copy(&kept->factors, data->factors, info->num_voxels, log);
}

lr_status lr_direct_host_set_image(struct lr_direct_host *host, lr_direct *direct,
                                   const float *image, const lr_log *log)
{
    const int64_t count = lr_direct_get_info(direct)->num_voxels;
    if (host->image == NULL) {
        host->image = lr_alloc(count, sizeof(double), "an image", log);
    }
    for (int64_t k = 0; host->image != NULL && k < count; k++) {
        host->image[k] = (double)image[k];
    }
    return host->image != NULL ? LR_OK : LR_FAILED;
}

void lr_direct_host_get_image(const struct lr_direct_host *host, const lr_direct *direct,
                              float *image)
{
    const int64_t count = lr_direct_get_info(direct)->num_voxels;
    for (int64_t k = 0; k < count; k++) {
        image[k] = (float)host->image[k];
    }
}

/* --- updates --- */

/* Arrays of an update. */
struct work {
    lr_direct *direct;
    int64_t count;
    double *histo, *back, *sum;
};

/* In place of the forward projection: what is projected back. */
static void find_discrepancy(const struct lr_direct_host_view *view, lr_direct_rule rule,
                             double *histo, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        const double factor = view->factors != NULL ? (double)view->factors[k] : 1;
        const double additive = view->additive != NULL ? (double)view->additive[k] : 0;
        const double expected = factor * histo[k] + additive;
        const double ratio = (double)view->counts[k] / expected;
        histo[k] =
            expected > LR_DIRECT_LEAST ? factor * (rule == LR_DIRECT_RAMLA ? ratio - 1 : ratio) : 0;
    }
}

static lr_status add_back(struct work *work, int view, double *sum)
{
    LR_TRY(lr_direct_back_f64(work->direct, view, work->histo, work->back));
    for (int64_t k = 0; k < work->count; k++) {
        sum[k] += work->back[k];
    }
    return LR_OK;
}

static lr_status make_sensitivity(struct lr_direct_host *host, struct work *work,
                                  const struct lr_direct_step_params *step, const lr_log *log)
{
    double *sum = host->sensitivities[step->number];
    if (sum != NULL) {
        return LR_OK;
    }
    sum = host->sensitivities[step->number] =
        lr_alloc(work->count, sizeof(*sum), "a sensitivity", log);
    for (int n = 0; sum != NULL && n < step->num_views; n++) {
        const float *factors = host->views[step->views[n]].factors;
        for (int64_t k = 0; k < work->count; k++) {
            work->histo[k] = factors != NULL ? (double)factors[k] : 1;
        }
        LR_TRY(add_back(work, step->views[n], sum));
    }
    return sum != NULL ? LR_OK : LR_FAILED;
}

static void apply(struct lr_direct_host *host, const struct work *work,
                  const struct lr_direct_step_params *step)
{
    for (int64_t k = 0; k < work->count; k++) {
        if (step->rule == LR_DIRECT_RAMLA) {
            host->image[k] *= fmax(1 + step->lambda * work->sum[k], 0);
        } else if (host->sensitivities[step->number][k] > LR_DIRECT_LEAST) {
            host->image[k] *= work->sum[k] / host->sensitivities[step->number][k];
        }
    }
}

static lr_status update(struct lr_direct_host *host, struct work *work,
                        const struct lr_direct_step_params *step, const lr_log *log)
{
    if (step->rule == LR_DIRECT_EM) {
        LR_TRY(make_sensitivity(host, work, step, log));
    }
    for (int n = 0; n < step->num_views; n++) {
        const int view = step->views[n];
        LR_TRY(lr_direct_forward_f64(work->direct, view, host->image, work->histo));
        find_discrepancy(&host->views[view], step->rule, work->histo, work->count);
        LR_TRY(add_back(work, view, work->sum));
    }
    apply(host, work, step);
    return LR_OK;
}

lr_status lr_direct_host_update(struct lr_direct_host *host, lr_direct *direct,
                                const struct lr_direct_step_params *step, const lr_log *log)
{
    const int64_t count = lr_direct_get_info(direct)->num_voxels;
    struct work work = {
        .direct = direct,
        .count = count,
        .histo = lr_alloc(count, sizeof(double), "a histo-image", log),
        .back = lr_alloc(count, sizeof(double), "an image", log),
        .sum = lr_alloc(count, sizeof(double), "an image", log),
    };
    const lr_status status =
        work.histo && work.back && work.sum ? update(host, &work, step, log) : LR_FAILED;
    free(work.sum);
    free(work.back);
    free(work.histo);
    return status;
}

void lr_direct_host_finish(struct lr_direct_host *host, int num_views)
{
    forget_sensitivities(host, num_views);
    for (int k = 0; k < num_views && host->views != NULL; k++) {
        free(host->views[k].counts);
        free(host->views[k].additive);
        free(host->views[k].factors);
    }
    free(host->sensitivities);
    free(host->views);
    free(host->image);
    *host = (struct lr_direct_host){0};
}
