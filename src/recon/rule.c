/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon/rule.h"

#include "base/log.h"
#include "recon/subsets.h"

#include <math.h>

/* Two numbers as fractions of the level of the uniform start image (lr_find_level). share_of_epsilon: default of
 * epsilon. share_of_floor: floor of the preconditioner, which replaces lower voxel values, so that such voxels can
 * grow. */
static const double share_of_epsilon = 1e-2, share_of_floor = 1e-6;

/* The curvature of the prior as a multiple of the data's: where it smooths much, and where the image becomes flat. */
static const double much = 4.0, too_much = 100.0;

/* --- the prior --- */

lr_status lr_rdp_check(const lr_rdp *prior, int64_t num_voxels, const lr_log *log)
{
    const double numbers[3] = {prior->beta, prior->gamma, prior->epsilon};
    static const char *const names[3] = {"beta", "gamma", "epsilon"};
    for (int k = 0; k < 3; k++) {
        if (!isfinite(numbers[k]) || numbers[k] < 0.0) {
            return lr_error(log, LR_USAGE, "%s of the prior is %g: it must be finite and at least 0", names[k],
                            numbers[k]);
        }
    }
    if (prior->kappa == NULL) return LR_OK;
    if (prior->kappa->count != num_voxels) {
        return lr_error(log, LR_USAGE, "the kappa image has %lld voxels where the image has %lld",
                        (long long)prior->kappa->count, (long long)num_voxels);
    }
    int64_t at;
    double value;
    LR_TRY(lr_find_invalid(prior->kappa, &at, &value));
    return at < 0 ? LR_OK
                  : lr_error(log, LR_BAD_INPUT,
                             "voxel %lld of the kappa image is %g: weights of the prior must be finite and at least 0",
                             (long long)at, value);
}

/* Describes the prior's differences. The weight of two neighbours is the voxel edge along x divided by their
 * distance. */
static lr_relative_differences describe(const lr_rdp *prior, const lr_grid *grid)
{
    lr_relative_differences differences = {.gamma = prior->gamma, .epsilon = prior->epsilon};
    for (int axis = 0; axis < 3; axis++) differences.size[axis] = grid->size[axis];
    for (int k = 1; k < 8; k++) {
        double square = 0.0;
        for (int axis = 0; axis < 3; axis++) square += (k >> axis & 1) * grid->voxel_mm[axis] * grid->voxel_mm[axis];
        differences.weights[k] = grid->voxel_mm[0] / sqrt(square);
    }
    return differences;
}

static lr_status put_kappa(const lr_rdp *prior, const lr_vector *like, const lr_log *log, lr_vector *kappa)
{
    const lr_vector_params there = {
        .place = like->place, .precision = like->precision, .name = "the kappa image", .log = log};
    *kappa = (lr_vector){0};
    return prior->kappa != NULL ? lr_vector_bring(prior->kappa, &there, kappa) : LR_OK;
}

static lr_status find(const lr_rdp *prior, lr_relative_differences *differences, lr_vector *y)
{
    lr_vector kappa;
    lr_status status = put_kappa(prior, y, NULL, &kappa);
    if (status == LR_OK) {
        differences->kappa = prior->kappa != NULL ? &kappa : NULL;
        differences->y = y;
        status = lr_vector_relative_differences(differences);
    }
    lr_vector_destroy(&kappa);
    return status;
}

lr_status lr_rdp_value(const lr_rdp *prior, const lr_grid *grid, const lr_vector *image, double *value)
{
    lr_relative_differences differences = describe(prior, grid);
    lr_vector shares;
    LR_TRY(lr_rdp_check(prior, image->count, NULL));
    LR_TRY(lr_vector_create(
        &(lr_vector_params){
            .place = image->place, .count = image->count, .precision = image->precision, .name = "the prior's shares"},
        &shares));
    differences.what = LR_DIFFERENCES_VALUE;
    differences.x = image;
    lr_status status = find(prior, &differences, &shares);
    lr_vector_sums sums;
    status = status == LR_OK ? lr_vector_add_up(&shares, NULL, &sums) : status;
    if (status == LR_OK) *value = sums.sum;
    lr_vector_destroy(&shares);
    return status;
}

lr_status lr_rdp_gradient(const lr_rdp *prior, const lr_grid *grid, const lr_vector *image, lr_vector *gradient)
{
    lr_relative_differences differences = describe(prior, grid);
    LR_TRY(lr_rdp_check(prior, image->count, NULL));
    LR_TRY(lr_vector_fill(gradient, 0.0));
    differences.what = LR_DIFFERENCES_GRADIENT;
    differences.scale = 1.0;
    differences.x = image;
    return find(prior, &differences, gradient);
}

/* --- the penalty of a reconstruction --- */

lr_status lr_penalty_init(struct lr_penalty *penalty, const lr_recon_params *params, lr_place *place)
{
    const lr_operator_info *info = lr_operator_get_info(params->op);
    *penalty = (struct lr_penalty){.prior = params->prior};
    const lr_vector_params scale = {
        .place = place, .count = info->num_voxels, .name = "the preconditioner", .log = params->log};
    LR_TRY(lr_vector_create(&scale, &penalty->scale));
    if (params->prior == NULL) return LR_OK;
    penalty->differences = describe(params->prior, info->grid);
    penalty->differences.kappa = params->prior->kappa != NULL ? &penalty->kappa : NULL;
    return put_kappa(params->prior, &penalty->scale, params->log, &penalty->kappa);
}

void lr_penalty_finish(struct lr_penalty *penalty)
{
    lr_vector_destroy(&penalty->kappa);
    lr_vector_destroy(&penalty->scale);
    *penalty = (struct lr_penalty){0};
}

lr_status lr_penalty_start(struct lr_penalty *penalty, const struct lr_penalty_base *base)
{
    const lr_rdp *prior = penalty->prior;
    const lr_vector *sensitivity = base->sensitivity;
    lr_vector *scale = &penalty->scale, *sum = base->scratch; /* sum: sensitivity plus the prior's term */
    penalty->floor = share_of_floor * base->level;
    LR_TRY(lr_vector_copy(sensitivity, sum));
    if (prior != NULL) {
        /* The prior's weights are kappa_j sum_k w_jk kappa_k. They must be 0 in voxels that no LOR sees. The weights
         * are therefore multiplied by the sensitivity, and the result is divided by the sensitivity. */
        lr_relative_differences differences = penalty->differences;
        if (!(prior->epsilon > 0.0)) penalty->differences.epsilon = share_of_epsilon * base->level;
        differences.what = LR_DIFFERENCES_WEIGHTS;
        differences.x = sensitivity;
        differences.y = scale;
        LR_TRY(lr_vector_relative_differences(&differences));
        LR_TRY(lr_vector_multiply(scale, sensitivity));
        LR_TRY(lr_vector_divide(scale, sensitivity, 0.0));
        lr_vector_sums data, weights;
        LR_TRY(lr_vector_add_up(sensitivity, NULL, &data));
        LR_TRY(lr_vector_add_up(scale, NULL, &weights));
        const double ratio = 2.0 * prior->beta * weights.sum / data.sum;
        if (data.sum > 0.0 && ratio > too_much) {
            lr_warn(
                base->log,
                "beta %g lets the prior outweigh the data, and the image becomes flat: take one of about %.2g, which "
                "smooths much, or a smaller one",
                prior->beta, prior->beta * much / ratio);
        }
        LR_TRY(lr_vector_add_scaled(sum, 2.0 * prior->beta, scale));
    }
    LR_TRY(lr_vector_fill(scale, base->num_subsets));
    return lr_vector_divide(scale, sum, 0.0);
}

/* --- at work --- */

lr_status lr_penalty_value(const struct lr_penalty *penalty, const lr_vector *image, lr_vector *scratch, double *value)
{
    lr_relative_differences differences = penalty->differences;
    lr_vector_sums sums;
    *value = 0.0;
    if (penalty->prior == NULL) return LR_OK;
    differences.what = LR_DIFFERENCES_VALUE;
    differences.x = image;
    differences.y = scratch;
    LR_TRY(lr_vector_relative_differences(&differences));
    LR_TRY(lr_vector_add_up(scratch, NULL, &sums));
    *value = penalty->prior->beta * sums.sum;
    return LR_OK;
}

/* Returns the relaxation of an iteration. usual: relaxation of the first iteration if the caller gives none. */
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
                    "a relaxation of %g that falls by %g belongs to RAMLA and BSREM: ML-EM and OSEM have none",
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
 * Emission Tomography, IEEE Trans. Med. Imag. 15 (1996). Each update uses a subset of LORs instead of a single LOR.
 * With own_steps, each voxel has the largest step that its own sensitivity allows, as in Ahn and Fessler, IEEE Trans.
 * Med. Imag. 22 (2003). docs/method/common.md, "Block RAMLA". */

static lr_status check_relaxation(const lr_recon_params *params)
{
    const double first = params->relaxation, fall = params->relaxation_fall;
    if (isfinite(first) && isfinite(fall) && first >= 0.0 && fall >= 0.0) return LR_OK;
    return lr_error(params->log, LR_USAGE,
                    "a relaxation of %g that falls by %g: both must be finite, and neither may be negative", first,
                    fall);
}

static lr_status ramla_check(const lr_recon_params *params)
{
    LR_TRY(check_relaxation(params));
    if (params->relaxation > 1.0) {
        lr_warn(params->log,
                "a relaxation of %g, more than 1: voxels that an update would make negative become 0 and stay so",
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

/* The default relaxation. A voxel keeps at least ((M - 1) / (M + 9))^M of its value, more than exp(-10), in a pass over
 * M subsets. Thus the voxels of an image differ little enough to be added in single precision, and in the half
 * precision of tensor cores. */
double lr_ramla_relaxation(int subsets)
{
    return subsets > 1 ? 10.0 / (9.0 + subsets) : 1.0;
}

/* Returns the step length; if voxels have different steps, the largest. */
static double find_lambda(const struct lr_update_step *step)
{
    return update_relaxation(step, lr_ramla_relaxation(step->num_subsets)) * step->scale;
}

/* Finds the largest possible sum of the next image. With an adjoint pair of projections, sum_j x_j r_j <= sum_i y_i. If
 * the factor of voxel j is negative, it becomes 0, and x_j falls by at most lambda s_j x_j. */
static double find_most(const struct lr_update_step *step, double total, double counts)
{
    return total + find_lambda(step) * counts;
}

static lr_status ramla_update(const struct lr_update_step *step)
{
    const double relaxation = update_relaxation(step, lr_ramla_relaxation(step->num_subsets));
    if (step->own_scale != NULL) {
        /* The step is BSREM's, but without a floor: a voxel that is 0 stays 0. */
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
 * Using Relaxed Ordered Subsets Algorithms, IEEE Trans. Med. Imag. 22 (2003). Negative voxels are set to 0 after each
 * update. docs/method/priors.md, "BSREM". */

static lr_status bsrem_update(const struct lr_update_step *step)
{
    const struct lr_penalty *penalty = step->penalty;
    const double share = 1.0 / step->num_subsets;
    LR_TRY(update_gradient(step));
    if (penalty->prior != NULL) { /* subtracts beta dR / dx / num_subsets from the gradient */
        lr_relative_differences differences = penalty->differences;
        differences.what = LR_DIFFERENCES_GRADIENT;
        differences.scale = -share * penalty->prior->beta;
        differences.x = step->image;
        differences.y = step->next;
        LR_TRY(lr_vector_relative_differences(&differences));
    }
    return lr_vector_update_bsrem(&(lr_bsrem_update){.x = step->image,
                                                     .gradient = step->next,
                                                     .scale = &penalty->scale,
                                                     .relaxation = update_relaxation(step, 1.0),
                                                     .floor = penalty->floor,
                                                     .next = step->next});
}

const struct lr_update_rule lr_rule_bsrem = {
    .name = "BSREM",
    .is_penalised = true,
    .remedy = "leave out voxels that are hardly seen, or take a smaller relaxation",
    .check = check_relaxation,
    .update = bsrem_update,
};
