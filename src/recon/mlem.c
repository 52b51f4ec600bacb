/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Maximum-likelihood expectation maximisation: Shepp and Vardi, Maximum Likelihood Reconstruction
 * for Emission Tomography (1982); with the additive term as in Politte and Snyder (1991). */
#include <lr/recon.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/lor_check.h"
#include "recon/likelihood.h"

#include <math.h>
#include <stdlib.h>

enum { DEFAULT_ITERATIONS = 10, MAX_ITERATIONS = 1000000 };

struct mlem {
    const lr_mlem_params *params;
    const lr_operator_info *info;
    int iterations;
    float *image;       /* the caller's; changed only when an iteration is complete */
    float *sensitivity; /* [num_voxels] */
    float *correction;  /* [num_voxels] A^T ratio */
    float *data;        /* [num_lors] yhat, then the ratio in its place */
    bool has_warned;
};

static lr_status check_params(const lr_mlem_params *params, const float *image)
{
    if (params->op == NULL || params->data == NULL || image == NULL) {
        return lr_error(params->log, LR_USAGE,
                        "ML-EM needs an operator, data and an image to go to");
    }
    if (params->iterations < 0 || params->iterations > MAX_ITERATIONS) {
        return lr_error(params->log, LR_USAGE, "%d iterations: give 1 to %d, or 0 for %d",
                        params->iterations, MAX_ITERATIONS, DEFAULT_ITERATIONS);
    }
    const lr_lors *lors = lr_operator_get_info(params->op)->lors;
    LR_TRY(lr_lor_data_check(params->data, lors, "data", params->log));
    if (params->additive != NULL) {
        LR_TRY(lr_lor_data_check(params->additive, lors, "additive term", params->log));
    }
    return LR_OK;
}

static lr_status check_initial(const lr_mlem_params *params, int64_t num_voxels)
{
    for (int64_t v = 0; params->initial != NULL && v < num_voxels; v++) {
        if (!isfinite(params->initial[v]) || params->initial[v] < 0.0f) {
            return lr_error(params->log, LR_BAD_INPUT,
                            "voxel %lld of the initial image is %g: values must be finite and at "
                            "least 0",
                            (long long)v, (double)params->initial[v]);
        }
    }
    return LR_OK;
}

static lr_status allocate(struct mlem *mlem)
{
    const lr_log *log = mlem->params->log;
    const int64_t num_voxels = mlem->info->num_voxels;
    mlem->sensitivity = lr_alloc(num_voxels, sizeof(float), "the sensitivity", log);
    mlem->correction = lr_alloc(num_voxels, sizeof(float), "the correction image", log);
    mlem->data = lr_alloc(mlem->info->num_lors, sizeof(float), "the estimated data", log);
    return mlem->sensitivity && mlem->correction && mlem->data ? LR_OK : LR_FAILED;
}

static void finish(struct mlem *mlem)
{
    free(mlem->sensitivity);
    free(mlem->correction);
    free(mlem->data);
}

/* Voxels that no LOR sees start at 0 and stay there. */
static lr_status start_image(struct mlem *mlem)
{
    const float *initial = mlem->params->initial;
    bool has_sensitive = false, has_activity = false;
    for (int64_t v = 0; v < mlem->info->num_voxels; v++) {
        const bool is_sensitive = mlem->sensitivity[v] > 0.0f;
        const float start = initial != NULL ? initial[v] : 1.0f;
        mlem->image[v] = is_sensitive ? start : 0.0f;
        has_sensitive |= is_sensitive;
        has_activity |= mlem->image[v] > 0.0f;
    }
    if (!has_sensitive) {
        return lr_error(mlem->params->log, LR_BAD_INPUT,
                        "no voxel of the grid is seen by a LOR in coincidence: check the grid and "
                        "the scanner's coincidence rules");
    }
    if (!has_activity) {
        return lr_error(mlem->params->log, LR_BAD_INPUT,
                        "the initial image is 0 wherever the scanner sees, and ML-EM leaves zeros "
                        "as they are: give an image with positive values");
    }
    return LR_OK;
}

static void warn_left_out(struct mlem *mlem, const struct lr_fit *fit)
{
    if (fit->left_out_lors == 0 || mlem->has_warned) {
        return;
    }
    mlem->has_warned = true;
    lr_warn(mlem->params->log,
            "%lld LORs with %g counts are left out because no activity of the image reaches them: "
            "take a larger grid, more samples, or an additive term for scatter and randoms",
            (long long)fit->left_out_lors, fit->left_out_counts);
}

/* With nothing left to fit, the next image would be all zeros. */
static lr_status check_reached(const struct mlem *mlem, const struct lr_fit *fit)
{
    if (fit->left_out_lors == 0 || fit->measured_counts > 0.0) {
        return LR_OK;
    }
    return lr_error(mlem->params->log, LR_BAD_INPUT,
                    "none of the %g counts lies in a LOR that an active voxel reaches: check that "
                    "grid and data belong together",
                    fit->left_out_counts);
}

static double updated(const struct mlem *mlem, int64_t v)
{
    const double sensitivity = mlem->sensitivity[v];
    return sensitivity > 0.0 ? mlem->image[v] / sensitivity * mlem->correction[v] : 0.0;
}

/* First looks whether all of it is finite, so that the image holds whole iterations only. */
static lr_status update_image(struct mlem *mlem, int number, double *sensitive_counts)
{
    const int64_t num_voxels = mlem->info->num_voxels;
    for (int64_t v = 0; v < num_voxels; v++) {
        if (!isfinite((float)updated(mlem, v))) {
            return lr_error(mlem->params->log, LR_FAILED,
                            "iteration %d: voxel %lld grew beyond the largest number (its "
                            "sensitivity is %g): leave out voxels that are hardly seen",
                            number, (long long)v, (double)mlem->sensitivity[v]);
        }
    }
    *sensitive_counts = 0.0;
    for (int64_t v = 0; v < num_voxels; v++) {
        mlem->image[v] = (float)updated(mlem, v);
        *sensitive_counts += (double)mlem->sensitivity[v] * mlem->image[v];
    }
    return LR_OK;
}

static lr_status hand_over(const struct mlem *mlem, const lr_iteration *done)
{
    const lr_mlem_params *params = mlem->params;
    return params->iteration != NULL ? params->iteration(params->user, done) : LR_OK;
}

static lr_status iterate(struct mlem *mlem, int number)
{
    const double start = lr_clock_seconds();
    const struct lr_fit_input input = {mlem->params->data, mlem->params->additive,
                                       mlem->info->num_lors, mlem->info->threads,
                                       mlem->params->log};
    lr_iteration done = {.number = number, .image = mlem->image};
    struct lr_fit fit;
    LR_TRY(lr_operator_forward(mlem->params->op, mlem->image, mlem->data));
    LR_TRY(lr_fit_ratio(&input, mlem->data, &fit));
    LR_TRY(check_reached(mlem, &fit));
    LR_TRY(lr_operator_back(mlem->params->op, mlem->data, mlem->correction));
    LR_TRY(update_image(mlem, number, &done.sensitive_counts));
    warn_left_out(mlem, &fit);
    done.log_likelihood = fit.log_likelihood;
    done.measured_counts = fit.measured_counts;
    done.estimated_counts = fit.estimated_counts;
    done.left_out_lors = fit.left_out_lors;
    done.left_out_counts = fit.left_out_counts;
    done.seconds = lr_clock_seconds() - start;
    return hand_over(mlem, &done);
}

static lr_status run(struct mlem *mlem)
{
    LR_TRY(allocate(mlem));
    LR_TRY(lr_operator_sensitivity(mlem->params->op, mlem->sensitivity));
    LR_TRY(start_image(mlem));
    for (int number = 1; number <= mlem->iterations; number++) {
        LR_TRY(lr_progress_report(mlem->params->progress, "reconstructing", number - 1.0,
                                  mlem->iterations));
        LR_TRY(iterate(mlem, number));
    }
    /* Too late to be stopped. */
    (void)lr_progress_report(mlem->params->progress, "reconstructing", mlem->iterations,
                             mlem->iterations);
    return LR_OK;
}

lr_status lr_mlem(const lr_mlem_params *params, float *image)
{
    LR_TRY(check_params(params, image));
    struct mlem mlem = {.params = params,
                        .info = lr_operator_get_info(params->op),
                        .iterations =
                            params->iterations > 0 ? params->iterations : DEFAULT_ITERATIONS,
                        .image = image};
    LR_TRY(check_initial(params, mlem.info->num_voxels));
    const lr_status status = run(&mlem);
    finish(&mlem);
    return status;
}
