/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon/rule.h"

double lr_update_relaxation(const struct lr_update_step *step, double usual)
{
    const lr_recon_params *params = step->params;
    const double first = params->relaxation > 0.0 ? params->relaxation : usual;
    return first / (1.0 + params->relaxation_fall * step->iteration);
}

lr_status lr_update_gradient(const struct lr_update_step *step)
{
    const lr_status status = lr_vector_copy(step->ratios, step->next);
    return status == LR_OK ? lr_vector_add_scaled(step->next, -1.0, step->sensitivity) : status;
}
