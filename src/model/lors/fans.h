/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sums over the LORs of a crystal, its fan, and of a module pair, without visiting each LOR where
 * the coincidence rules part into columns and rings. */
#ifndef LR_MODEL_FANS_H
#define LR_MODEL_FANS_H

#include <lr/lors.h>

/* LORs of a module pair that are in coincidence. */
int64_t lr_pair_num_coincidences(const lr_lors *lors, int64_t pair);

/* fans[c] = sum of values[d] over the crystals d in coincidence with c; both [num_crystals].
 * Same bits whatever the number of threads. errors: LR_FAILED, no memory, logged. */
lr_status lr_crystal_fans(const lr_lors *lors, const double *values, double *fans, int threads, const lr_log *log);

#endif
