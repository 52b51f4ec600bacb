/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Block RAMLA: Browne and De Pierro, A Row-Action Alternative to the EM Algorithm for Maximizing
 * Likelihoods in Emission Tomography, IEEE Trans. Med. Imag. 15 (1996), with the LORs of a subset in
 * the place of one. docs/method/common.md, "Block RAMLA". */
#include "base/log.h"
#include "recon/rule.h"

#include <math.h>

static bool is_number(double value)
{
    return isfinite(value) && value >= 0.0;
}

static lr_status check(const lr_recon_params *params)
{
    if (!is_number(params->relaxation) || !is_number(params->relaxation_fall)) {
        return lr_error(params->log, LR_USAGE,
                        "a relaxation of %g that falls by %g: both must be finite, and neither may "
                        "be negative",
                        params->relaxation, params->relaxation_fall);
    }
    if (params->relaxation > 1.0) {
        lr_warn(params->log,
                "a relaxation of %g, more than 1: voxels that an update would make negative become "
                "0 and stay so",
                params->relaxation);
    }
    return LR_OK;
}

/* The largest step that makes no voxel negative, whatever was measured: 1 / max_j s_j. */
static lr_status start(const lr_vector *sensitivity, double *scale)
{
    lr_vector_sums sums;
    LR_TRY(lr_vector_add_up(sensitivity, NULL, &sums));
    *scale = sums.largest > 0.0 ? 1.0 / sums.largest : 0.0;
    return LR_OK;
}

static double find_lambda(const struct lr_update_step *step)
{
    const lr_recon_params *params = step->params;
    const double first = params->relaxation > 0.0 ? params->relaxation : 1.0;
    const double relaxation = first / (1.0 + params->relaxation_fall * step->iteration);
    return relaxation * step->scale;
}

static lr_status update(const struct lr_update_step *step)
{
    return lr_vector_update_ramla(&(lr_ramla_update){.x = step->image,
                                                     .correction = step->ratios,
                                                     .sensitivity = step->sensitivity,
                                                     .lambda = find_lambda(step),
                                                     .next = step->next});
}

const struct lr_update_rule lr_rule_ramla = {
    .name = "RAMLA",
    .remedy = "leave out voxels that are hardly seen, or take a smaller relaxation",
    .check = check,
    .start = start,
    .update = update,
    .lambda = find_lambda,
};
