/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What is asked of a reconstruction: whether it makes sense, and which update rule it takes. */
#ifndef LR_RECON_REQUEST_H
#define LR_RECON_REQUEST_H

#include "recon/rule.h"

/* errors: LR_USAGE for params, or an image, that make no sense; LR_BAD_INPUT for data that do not. */
lr_status lr_recon_check(const lr_recon_params *params, const lr_vector *image);

/* errors: LR_BAD_INPUT for an initial image with values that are negative or not finite. */
lr_status lr_recon_check_initial(const lr_recon_params *params, int64_t num_voxels);

/* Of an algorithm that has been checked. */
const struct lr_update_rule *lr_recon_rule(lr_recon_algorithm algorithm);

#endif
