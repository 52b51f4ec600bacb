/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * From what a caller asks of an operator to what a backend is given. */
#ifndef LR_OPERATOR_SETTINGS_H
#define LR_OPERATOR_SETTINGS_H

#include "operator/backend.h"

/* Checks everything that does not depend on the backend and replaces every default.
 * grid: receives the copy of params->grid that settings->grid then points to; must live as long.
 * log: where sentences go, here and later (params->log is not used).
 * errors: LR_USAGE, LR_BAD_INPUT (grid, mu), LR_FAILED. */
lr_status lr_settings_complete(const lr_operator_params *params, const lr_log *log, lr_grid *grid,
                               struct lr_backend_params *settings);

#endif
