/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_RECON_LEVEL_H
#define LR_RECON_LEVEL_H

#include "recon/compared.h"

/* The uniform image to start from gives what an additive term leaves of the counts, and a hundredth of them
 * at least. Alone, EM would find an image's size in one update. Beside an additive term it does not: an image
 * that explains little of the counts is multiplied by at most the ratio of counts to term, update by update.
 * Steps of limited length do not either, where a voxel's sensitivity is small.
 * seen_counts: what an image of ones gives, alike on all ranks. level: 1 where there are no counts. Warns of a
 * term above the counts. */
lr_status lr_find_level(struct lr_compared *compared, double seen_counts, double *level);

#endif
