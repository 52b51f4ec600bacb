/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The projections of the cpu backend, docs/method/correspondence.md, "Forward and back-projection",
 * in double. Both use the elements of lr_cpu_each_block, so they are adjoint to rounding. */
#ifndef LR_CPU_FORWARD_H
#define LR_CPU_FORWARD_H

#include "cpu/rows.h"

/* data = A image; each LOR adds its voxels in ascending order. image: [num_voxels],
 * data: [num_lors], overwritten. */
lr_status lr_cpu_forward(struct lr_cpu *cpu, const double *image, double *data);

#endif
