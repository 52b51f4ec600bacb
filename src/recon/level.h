/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_RECON_LEVEL_H
#define LR_RECON_LEVEL_H

#include "recon/compared.h"

#include <stdbool.h>

/* The uniform image to start from. Alone, EM finds an image's size in one update. Beside an additive term
 * it does not: an image that explains little of the counts is multiplied by at most the ratio of counts to
 * term, update by update. Steps of limited length do not either, where a voxel's sensitivity is small. The
 * image gives what the term leaves of the counts then, and a hundredth of them at least.
 * seen_counts: what an image of ones gives, alike on all ranks. has_steps: of the rule's updates. level: 1
 * where there are no counts, and of EM where there is no additive term. Warns of a term above the counts. */
lr_status lr_find_level(struct lr_compared *compared, double seen_counts, bool has_steps,
                        double *level);

#endif
