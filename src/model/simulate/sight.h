/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which modules a ray from inside a scanner may meet: found by its azimuth where it leaves the innermost
 * and the outermost of them, instead of by asking each module. */
#ifndef LR_MODEL_SIMULATE_SIGHT_H
#define LR_MODEL_SIMULATE_SIGHT_H

#include <lr/scanner.h>

enum { LR_SIGHT_SECTORS = 64 };

/* Zero is valid and finishes to nothing. */
struct lr_sight {
    const struct lr_scanner *scanner;
    double radius_mm[2], axial_mm[2]; /* between which all detection planes lie */
    bool is_open;                     /* whether the axis is free of them */
    int first[LR_SIGHT_SECTORS + 1];  /* of a sector's modules */
    int *modules;                     /* owned, ascending in each sector */
};

/* errors: LR_FAILED without memory. */
lr_status lr_sight_init(struct lr_sight *sight, const struct lr_scanner *scanner, const lr_log *log);
void lr_sight_finish(struct lr_sight *sight);

/* Sectors from first to last, going up and around, whose modules a ray may meet; last < first: none. */
struct lr_sight_sectors {
    int first, last;
};

/* direction: of length 1. */
struct lr_sight_sectors lr_sight_find(const struct lr_sight *sight, const double point_mm[3],
                                      const double direction[3]);

#endif
