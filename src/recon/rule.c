/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon/rule.h"

#include "base/log.h"

#include <math.h>

/* Returns the relaxation of an iteration. usual: relaxation of the first iteration if the params give none. */
static double update_relaxation(const struct lr_update_step *step, double usual)
{
    const lr_recon_params *params = step->params;
    const double first = params->relaxation > 0.0 ? params->relaxation : usual;
    return first / (1.0 + params->relaxation_fall * step->iteration);
}

/* Computes the gradient of the subset's log-likelihood into step->next. */
static lr_status update_gradient(const struct lr_update_step *step)
{
    const lr_status status = lr_vector_copy(step->ratios, step->next);
    return status == LR_OK ? lr_vector_add_scaled(step->next, -1.0, step->sensitivity) : status;
}

/* Expectation maximisation: Shepp and Vardi, Maximum Likelihood Reconstruction for Emission
 * Tomography (1982); with the LORs of a subset, Hudson and Larkin, Accelerated image reconstruction
 * using ordered subsets of projection data, IEEE Trans. Med. Imag. 13 (1994). */

static lr_status check(const lr_recon_params *params)
{
    if (params->relaxation == 0.0 && params->relaxation_fall == 0.0) return LR_OK;
    return lr_error(params->log, LR_USAGE,
                    "a relaxation of %g that falls by %g belongs to RAMLA and BSREM: ML-EM and "
                    "OSEM have none",
                    params->relaxation, params->relaxation_fall);
}

static lr_status update(const struct lr_update_step *step)
{
    return lr_vector_update_em(&(lr_em_update){step->image, step->ratios, step->sensitivity, step->next});
}

const struct lr_update_rule lr_rule_em = {
    .name = "EM",
    .remedy = "leave out voxels that are hardly seen, or take fewer subsets",
    .check = check,
    .update = update,
};

/* Block RAMLA: Browne and De Pierro, A Row-Action Alternative to the EM Algorithm for Maximizing Likelihoods in
 * Emission Tomography, IEEE Trans. Med. Imag. 15 (1996). A subset of LORs takes the place of their single LOR. If
 * the caller asks for own steps, each voxel has the largest step that its own sensitivity allows, as in Ahn and
 * Fessler, IEEE Trans. Med. Imag. 22 (2003). docs/method/common.md, "Block RAMLA". */

static lr_status check_relaxation(const lr_recon_params *params)
{
    const double first = params->relaxation, fall = params->relaxation_fall;
    if (isfinite(first) && isfinite(fall) && first >= 0.0 && fall >= 0.0) return LR_OK;
    return lr_error(params->log, LR_USAGE,
                    "a relaxation of %g that falls by %g: both must be finite, and neither may "
                    "be negative",
                    first, fall);
}

static lr_status ramla_check(const lr_recon_params *params)
{
    LR_TRY(check_relaxation(params));
    if (params->relaxation > 1.0) {
        lr_warn(params->log,
                "a relaxation of %g, more than 1: voxels that an update would make negative become "
                "0 and stay so",
                params->relaxation);
    }
    return LR_OK;
}

/* Computes the largest step that makes no voxel negative for any measured data: 1 / max_j s_j. */
static lr_status start(const lr_vector *sensitivity, double *scale)
{
    lr_vector_sums sums;
    LR_TRY(lr_vector_add_up(sensitivity, NULL, &sums));
    *scale = sums.largest > 0.0 ? 1.0 / sums.largest : 0.0;
    return LR_OK;
}

/* The default relaxation. With it, a pass over M subsets leaves a voxel at least ((M - 1) / (M + 9))^M of its value,
 * which is more than exp(-10). The voxels of an image then stay close enough in size to be added in single precision,
 * and in the half precision of tensor cores. */
double lr_ramla_relaxation(int subsets)
{
    return subsets > 1 ? 10.0 / (9.0 + subsets) : 1.0;
}

/* Returns the step length. If voxels have different steps, it is the largest. */
static double find_lambda(const struct lr_update_step *step)
{
    return update_relaxation(step, lr_ramla_relaxation(step->num_subsets)) * step->scale;
}

/* Bounds the sum of the next image. Adjoint projections give sum_j x_j r_j <= sum_i y_i. A factor that is cut off at
 * 0 takes at most lambda s_j x_j from x_j. */
static double find_most(const struct lr_update_step *step, double total, double counts)
{
    return total + find_lambda(step) * counts;
}

static lr_status ramla_update(const struct lr_update_step *step)
{
    const double relaxation = update_relaxation(step, lr_ramla_relaxation(step->num_subsets));
    if (step->own_scale != NULL) {
        /* BSREM's step without a floor: a voxel that is 0 stays 0. */
        LR_TRY(update_gradient(step));
        return lr_vector_update_bsrem(&(lr_bsrem_update){.x = step->image,
                                                         .gradient = step->next,
                                                         .scale = step->own_scale,
                                                         .relaxation = relaxation,
                                                         .next = step->next});
    }

    return lr_vector_update_ramla(&(lr_ramla_update){.x = step->image,
                                                     .correction = step->ratios,
                                                     .sensitivity = step->sensitivity,
                                                     .lambda = relaxation * step->scale,
                                                     .next = step->next});
}

const struct lr_update_rule lr_rule_ramla = {
    .name = "RAMLA",
    .remedy = "leave out voxels that are hardly seen, or take a smaller relaxation",
    .check = ramla_check,
    .start = start,
    .update = ramla_update,
    .lambda = find_lambda,
    .most = find_most,
};

/* Block sequential regularised EM: Ahn and Fessler, Globally Convergent Image Reconstruction for Emission Tomography
 * Using Relaxed Ordered Subsets Algorithms, IEEE Trans. Med. Imag. 22 (2003). Images are projected onto those
 * without negative voxels. docs/method/priors.md, "BSREM". */

static lr_status bsrem_update(const struct lr_update_step *step)
{
    LR_TRY(update_gradient(step));
    LR_TRY(lr_penalty_subtract(step->penalty, step->image, 1.0 / step->num_subsets, step->next));
    return lr_vector_update_bsrem(&(lr_bsrem_update){.x = step->image,
                                                     .gradient = step->next,
                                                     .scale = &step->penalty->scale,
                                                     .relaxation = update_relaxation(step, 1.0),
                                                     .floor = step->penalty->floor,
                                                     .next = step->next});
}

const struct lr_update_rule lr_rule_bsrem = {
    .name = "BSREM",
    .is_penalised = true,
    .remedy = "leave out voxels that are hardly seen, or take a smaller relaxation",
    .check = check_relaxation,
    .update = bsrem_update,
};
