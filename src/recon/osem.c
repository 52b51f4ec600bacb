/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Ordered subsets expectation maximisation by name; its update is in rule_em.c. */
#include "base/log.h"

#include <lr/recon.h>

lr_status lr_osem(const lr_osem_params *params, lr_vector *image)
{
    if (params->algorithm != LR_ALGORITHM_OSEM) {
        return lr_error(params->log, LR_USAGE, "OSEM is asked for algorithm %d: lr_recon has the others",
                        (int)params->algorithm);
    }
    return lr_recon(params, image);
}
