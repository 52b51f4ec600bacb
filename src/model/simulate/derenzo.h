/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The rods of a Derenzo phantom. */
#pragma once

#include <lr/log.h>

#define LR_DERENZO_SECTORS 6

/* Diameter of each sector's rods, mm. */
extern const double lr_derenzo_diameters_mm[LR_DERENZO_SECTORS];

struct lr_rod {
    double centre_mm[2]; /* position relative to the phantom's axis */
    double radius_mm;
    int sector;
};

/* Places the rods within a circle of this radius. Sector k is the wedge from 60 k to 60 k + 60 degrees, counted from +x
 * towards +y. Its rods are on a triangular lattice with a spacing of twice their diameter. The first rod is 1.5
 * diameters from the axis, on the middle line of the wedge. Each row has one rod more than the row before, and rods are
 * at least a quarter of a diameter from the sides of the wedge. Rods that are not wholly within the circle are skipped.
 * Returns [*num_rods], owned by the caller; NULL if memory runs out. */
struct lr_rod *lr_derenzo_rods(double radius_mm, int *num_rods, const lr_log *log);
