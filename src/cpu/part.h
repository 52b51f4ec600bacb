/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of some LORs. Every row is computed whole, so they take the time of a projection of
 * all LORs, but nothing is held for LORs that are not selected. */
#ifndef LR_CPU_PART_H
#define LR_CPU_PART_H

#include "cpu/rows.h"

/* values: [lr_selection_count], in the selection's order; NULL in the back-projection: all 1.
 * part: checked, not empty. */
lr_status lr_cpu_forward_part(struct lr_cpu *cpu, const lr_selection *part, const double *image, double *values);
lr_status lr_cpu_back_part(struct lr_cpu *cpu, const lr_selection *part, const double *values, double *image);

#endif
