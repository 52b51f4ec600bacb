/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/penetration.h"

#include "base/log.h"

lr_status lr_penetration_check(const lr_scanner *scanner, lr_mode mode, const lr_log *log)
{
    if (mode == LR_MODE_EXACT) {
        return lr_error(log, LR_USAGE,
                        "crystal penetration is integrated along lines and has no exact mode: use "
                        "mode sampled, with more rays for more accuracy");
    }
    if (!(scanner->crystal_mu_per_mm > 0)) {
        return lr_error(log, LR_USAGE,
                        "crystal penetration needs to know how the crystals of %s attenuate: give "
                        "crystal_mu_per_mm in its file (LSO has about 0.087/mm)",
                        scanner->name);
    }
    return LR_OK;
}
