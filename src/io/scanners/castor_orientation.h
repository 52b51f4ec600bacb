/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The orientations of CASToR's look-up tables, which are not all across the panels: one table in
 * circulation has them mirrored, another along the ring. Positions prevail. */
#ifndef LR_IO_CASTOR_ORIENTATION_H
#define LR_IO_CASTOR_ORIENTATION_H

#include <lr/crystals.h>

/* Turns the crystals' axes[2] into what agrees best with where their neighbours stand, with a
 * warning that names `path` where that is not what the table says. Groups are layers. Returns how
 * far they are then off a right angle to the way to the neighbour, the mean of some, as a cosine.
 * Time goes with the number of crystals. */
double lr_castor_orient(lr_crystal *crystals, int count, const char *path, const lr_log *log);

#endif
