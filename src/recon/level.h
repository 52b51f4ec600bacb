/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_RECON_LEVEL_H
#define LR_RECON_LEVEL_H

#include "recon/compared.h"

#include <stdbool.h>

/* The uniform image to start from. Alone, EM and RAMLA find an image's size in one update. Beside an
 * additive term they do not: an image that explains little of the counts is multiplied by at most the
 * ratio of counts to term, update by update. It starts with what the term leaves of the counts then.
 * seen_counts: what an image of ones gives. level: kept where there is no additive term, or where it is
 * settled already. Warns of a term above the counts. */
lr_status lr_find_level(struct lr_compared *compared, double seen_counts, bool is_settled,
                        float *level);

#endif
