/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The rods of a Derenzo phantom. */
#ifndef LR_MODEL_DERENZO_H
#define LR_MODEL_DERENZO_H

#include <lr/log.h>

#define LR_DERENZO_SECTORS 6

/* Diameter of each sector's rods, mm. */
extern const double lr_derenzo_diameters_mm[LR_DERENZO_SECTORS];

struct lr_rod {
    double centre_mm[2]; /* from the phantom's axis */
    double radius_mm;
    int sector;
};

/* Lays out the rods within a circle of that radius: sector k is the wedge from 60 k to 60 k + 60
 * degrees, counted from +x towards +y. Its rods stand on a triangular lattice spaced by twice their
 * diameter whose first rod is 1.5 diameters from the axis, on the wedge's middle: so each row has
 * one rod more than the one before, and rods keep a quarter of a diameter from the wedge's sides.
 * Rods that do not lie wholly within the circle are left out.
 * returns: [*num_rods], owned by the caller; NULL when memory is short. */
struct lr_rod *lr_derenzo_rods(double radius_mm, int *num_rods, const lr_log *log);

#endif
