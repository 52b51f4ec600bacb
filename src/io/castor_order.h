/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_CASTOR_ORDER_H
#define LR_IO_CASTOR_ORDER_H

#include <lr/scanner.h>

/* How CASToR numbers the crystals of a scanner here: layer by layer (we have one), ring by ring,
 * azimuth by azimuth. Crystals whose centres are within 0.01 mm of the next lower one along z
 * belong to one ring; rings ascend with z, azimuths from +x towards +y from 0 to 360 degrees; at the
 * same azimuth (to 1e-6 degrees) the one nearer to the axis comes first, then the lower number.
 * Our frame throughout. The .lut writer and the .Cdf reader and writer share this.
 *
 * order: [num_crystals], order[k] = our number of CASToR's crystal k.
 * errors: LR_FAILED without memory, logged. */
lr_status lr_castor_order(const lr_scanner *scanner, int *order, const lr_log *log);

/* The other way round: place[crystal] = CASToR's number of our crystal. */
void lr_castor_place(const int *order, int num_crystals, int *place);

#endif
