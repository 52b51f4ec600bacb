/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Block sequential regularised EM: Ahn and Fessler, Globally Convergent Image Reconstruction for
 * Emission Tomography Using Relaxed Ordered Subsets Algorithms, IEEE Trans. Med. Imag. 22 (2003), with
 * projection onto images that are not negative. docs/method/priors.md, "BSREM". */
#include "base/log.h"
#include "recon/rule.h"

#include <math.h>

static lr_status check(const lr_recon_params *params)
{
    const double first = params->relaxation, fall = params->relaxation_fall;
    if (isfinite(first) && isfinite(fall) && first >= 0.0 && fall >= 0.0) return LR_OK;
    return lr_error(params->log, LR_USAGE,
                    "a relaxation of %g that falls by %g: both must be finite, and neither may be "
                    "negative",
                    first, fall);
}

static lr_status update(const struct lr_update_step *step)
{
    LR_TRY(lr_update_gradient(step));
    LR_TRY(lr_penalty_subtract(step->penalty, step->image, 1.0 / step->num_subsets, step->next));
    return lr_vector_update_bsrem(&(lr_bsrem_update){.x = step->image,
                                                     .gradient = step->next,
                                                     .scale = &step->penalty->scale,
                                                     .relaxation = lr_update_relaxation(step, 1.0),
                                                     .floor = step->penalty->floor,
                                                     .next = step->next});
}

const struct lr_update_rule lr_rule_bsrem = {
    .name = "BSREM",
    .is_penalised = true,
    .remedy = "leave out voxels that are hardly seen, or take a smaller relaxation",
    .check = check,
    .update = update,
};
