/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/operators.h"

#include "base/log.h"

#include <string.h>

lr_status operator_create(const lr_operator_params *params, lr_operator **op)
{
    LR_TRY(lr_progress_report(params->progress, "preparing the projector", 0, 1));
    *op = lr_operator_create(params);
    if (*op != NULL) {
        return LR_OK;
    }
    LR_TRY(lr_progress_report(params->progress, "preparing the projector", 0, 1));
    return LR_FAILED;
}

const char *backend_name(const char *wished, const char *usual)
{
    static const char *const names[] = {"auto", "cpu", "raster", "compute", "native"};
    for (size_t k = 0; wished != NULL && k < sizeof(names) / sizeof(names[0]); k++) {
        if (strcmp(names[k], wished) == 0) {
            return names[k];
        }
    }
    return usual;
}
