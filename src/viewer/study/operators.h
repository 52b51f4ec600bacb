/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_VIEWER_OPERATORS_H
#define LR_VIEWER_OPERATORS_H

#include <lr/operator.h>

/* lr_operator_create for a job: tells being stopped from failing, which the log has. */
lr_status operator_create(const lr_operator_params *params, lr_operator **op);

/* A backend's name that lives on: one of those there are, or `usual` for NULL and other words. */
const char *backend_name(const char *wished, const char *usual);

#endif
