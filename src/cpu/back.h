/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_CPU_BACK_H
#define LR_CPU_BACK_H

#include "cpu/rows.h"

/* image = A^T data; each voxel adds its LORs in ascending order. data: [num_lors],
 * image: [num_voxels], overwritten. See cpu/forward.h. */
lr_status lr_cpu_back(struct lr_cpu *cpu, const double *data, double *image);

#endif
