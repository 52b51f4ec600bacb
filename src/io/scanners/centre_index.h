/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_CENTRE_INDEX_H
#define LR_IO_CENTRE_INDEX_H

#include "model/scanner/point_hash.h"

#include <lr/scanner.h>

/* A scanner's crystal centres, to find the one at a position. */
struct lr_centre_index {
    double (*centres_mm)[3]; /* owned [num_crystals] */
    struct lr_point_hash hash;
};

/* On failure (no memory, logged) *index holds nothing. */
lr_status lr_centre_index_init(struct lr_centre_index *index, const lr_scanner *scanner, const lr_log *log);
void lr_centre_index_finish(struct lr_centre_index *index);

/* The crystal whose centre is nearest to a position, if within `reach_mm` (at most 1), else -1.
 * Constant time. */
int lr_centre_index_find(const struct lr_centre_index *index, const double position_mm[3], double reach_mm);

/* Distance to the nearest of all centres. Linear time, for sentences. */
double lr_centre_index_distance(const struct lr_centre_index *index, const double position_mm[3]);

#endif
