/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Whole updates of a reconstruction by an operator's backend (struct lr_backend_updates). */
#ifndef LR_OPERATOR_UPDATES_H
#define LR_OPERATOR_UPDATES_H

#include "operator/backend.h"

/* The backend, opened for such updates; NULL = it has none, or no room for the data. plan: all but
 * has_factors, which is the operator's. *backend is closed by its owner. */
lr_status lr_updates_open(lr_operator *op, const struct lr_update_plan *plan,
                          const struct lr_backend **backend);

/* Loads a subset with the operator's factors. data->factors is not read.
 * errors: LR_BAD_INPUT for factors that are negative or not finite; LR_FAILED. */
lr_status lr_updates_load(lr_operator *op, int subset, const struct lr_update_data *data);

#endif
