/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * How fast the backend of an operator is, by a short trial whose result is kept between runs. */
#ifndef LR_OPERATOR_MEASURE_H
#define LR_OPERATOR_MEASURE_H

#include "operator/facade.h"

/* Tries op->choice on the operator's scanner and settings, with few sample points spread over its
 * grid, more of them (of projections at most a quarter of the grid's own) while that takes no time, and stops each
 * projection after a fraction of a second, when it has told by its progress how far it is. The result
 * is op->voxel_us; nothing is tried where that is known. A backend of one device, scanner and setting is
 * tried once; from then on the file of io/files/notes.h knows, unless other programs held the processor
 * meanwhile, the grid has too few points to tell, or one takes so long that no more are tried.
 *
 * The caller's log hears of errors only.
 * errors: LR_CANCELLED; what the backend says. */
lr_status lr_measure_speed(struct lr_operator *op);

#endif
