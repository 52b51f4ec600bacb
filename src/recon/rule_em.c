/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Expectation maximisation: Shepp and Vardi, Maximum Likelihood Reconstruction for Emission
 * Tomography (1982); with the LORs of a subset, Hudson and Larkin, Accelerated image reconstruction
 * using ordered subsets of projection data, IEEE Trans. Med. Imag. 13 (1994). */
#include "base/log.h"
#include "recon/rule.h"

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
