/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the readers of GE's list mode and of its correction terms share. */
#ifndef LR_IO_GE_H
#define LR_IO_GE_H

#include "io/lor_data/sinogram.h"

/* Lists are written with 13 steps joined, 29 of these bins around the line's middle. */
enum { LR_GE_JOINED = 13, LR_GE_BINS = 29 };
static const double lr_ge_step_mm = 13.02 * 0.149896229;

/* Crystals of a scanner by GE's numbers. */
struct lr_ge_crystals {
    struct lr_sinogram_rings rings; /* without virtual places */
    int per_module;                 /* places */
};

/* The module at the top is that whose middle is nearest to +y, of two the one clockwise of it.
 * name: of the file, for sentences. errors: LR_BAD_INPUT for a scanner that is not made of full
 * rings. Finish in any case. */
lr_status lr_ge_crystals_init(struct lr_ge_crystals *crystals, const lr_scanner *scanner, const char *name,
                              const lr_log *log);
void lr_ge_crystals_finish(struct lr_ge_crystals *crystals);

/* A crystal's number over the whole scanner; -1 where it lacks it. */
static inline int32_t lr_ge_crystal(const struct lr_ge_crystals *crystals, int32_t ring, int32_t place)
{
    const struct lr_sinogram_rings *rings = &crystals->rings;
    if (ring < 0 || ring >= rings->rings || place < 0 || place >= rings->around) return -1;
    /* GE's places begin with the module at the top and run clockwise, as seen against z; ours are turned to
     * begin there too, and run the other way round. */
    const int ours = (crystals->per_module - 1 - place + rings->around) % rings->around;
    return rings->crystals[(int64_t)(rings->rings - 1 - ring) * rings->around + ours];
}

#endif
