/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What is asked of a reconstruction's parameters, whatever the update rule. */
#ifndef LR_RECON_CHECKS_H
#define LR_RECON_CHECKS_H

#include <lr/recon.h>

/* image: that the reconstruction goes to. errors: LR_USAGE; LR_BAD_INPUT for data that are no counts. */
lr_status lr_recon_check(const lr_recon_params *params, const lr_vector *image);

/* errors: LR_BAD_INPUT. */
lr_status lr_recon_check_initial(const lr_recon_params *params, int64_t num_voxels);

#endif
