/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The native backend with crystal penetration: lines through the sides of the primary's box, in single
 * precision (docs/method/correspondence.md, "Penetration"). Modules may stand anywhere. */
#ifndef LR_NATIVE_PENETRATION_H
#define LR_NATIVE_PENETRATION_H

#include "operator/backend.h"

/* Creates the backend for params->penetration. errors: LR_USAGE with an attenuation image; LR_FAILED;
 * logged. */
lr_status lr_native_penetration_create(const struct lr_backend_params *params, struct lr_backend *backend);

#endif
