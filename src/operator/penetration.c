/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "operator/backend.h"

lr_status lr_backend_check_penetration(const struct lr_backend_params *params)
{
    if (!params->penetration) {
        return LR_OK;
    }
    if (params->mode == LR_MODE_EXACT) {
        return lr_error(params->log, LR_USAGE,
                        "crystal penetration is integrated along lines and has no exact mode: use "
                        "mode sampled, with more rays for more accuracy");
    }
    if (!(params->scanner->crystal_mu_per_mm > 0)) {
        return lr_error(params->log, LR_USAGE,
                        "crystal penetration needs to know how the crystals of %s attenuate: give "
                        "crystal_mu_per_mm in its file (LSO has about 0.087/mm)",
                        params->scanner->name);
    }
    return LR_OK;
}
