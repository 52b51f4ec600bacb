/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * How sinograms without arc correction number the crystals of a scanner of full rings, and bins the
 * pairs of them: STIR's numbering (ProjDataInfoCylindricalNoArcCorr), which Siemens' is too.
 *
 * Around a ring there are an even number of places, virtual ones between the modules included, in
 * the direction of increasing angle; place 0 stands at 90 degrees in our frame, or a view offset
 * further. Rings count against our z. In STIR's x, y, z, which all run against ours, that is
 * x = R sin(psi), y = -R cos(psi), z = ring * pitch with psi = 360 place / places + offset. */
#ifndef LR_IO_SINOGRAM_H
#define LR_IO_SINOGRAM_H

#include <lr/lors.h>

/* Virtual places in each module: they belong to no crystal. Around, the larger half comes before
 * the module's crystals and the rest behind them (one: before, as on Siemens scanners); axially
 * they lie between module rings. */
struct lr_sinogram_gaps {
    int around, axial;
};

struct lr_sinogram_rings {
    int around, rings;      /* places per ring, rings; virtual ones included */
    int modules;            /* places around the ring that hold a module, as wide in places */
    int32_t *crystals;      /* owned [rings][around]: number over the whole scanner; -1 = none */
    double first_angle_deg; /* of place 0, in our frame */
    double radius_mm;       /* axis to the front faces' centres */
    double ring_pitch_mm;
};

/* The gaps whose places come nearest to where the crystals are; none where these are no rings.
 * errors: LR_FAILED, no memory, logged. */
lr_status lr_sinogram_gaps_of(const lr_scanner *scanner, struct lr_sinogram_gaps *gaps, const lr_log *log);

/* The gaps that give that many places per ring, and rings. errors: LR_BAD_INPUT where none do. */
lr_status lr_sinogram_gaps_for(const lr_scanner *scanner, const int64_t wanted[2], struct lr_sinogram_gaps *gaps,
                               const char *what, const lr_log *log);

/* Numbers the crystals; place 0 is the first of the modules at position 0. `what` is in sentences.
 * errors: LR_BAD_INPUT for a scanner that is not made of full rings of equal modules. */
lr_status lr_sinogram_rings_create(struct lr_sinogram_rings *rings, const lr_scanner *scanner,
                                   const struct lr_sinogram_gaps *gaps, const char *what, const lr_log *log);

/* Lets place 0 be what was place `steps`. errors: LR_FAILED if memory runs out. */
lr_status lr_sinogram_rings_turn(struct lr_sinogram_rings *rings, int steps, const lr_log *log);

/* Zero is allowed. */
void lr_sinogram_rings_finish(struct lr_sinogram_rings *rings);

/* Bin coordinates: view 0 .. around / 2 - 1, tangential position t with abs(t) < around / 2. */
struct lr_sinogram_bin {
    int view, t;
};

/* The two places of a bin; the first is det1. */
static inline void lr_sinogram_places(int around, const struct lr_sinogram_bin *bin, int places[2])
{
    /* floor(t / 2) and floor((t + 1) / 2), without remainders of negative numbers */
    const int shifted = bin->t + 2 * around;
    places[0] = (bin->view + shifted / 2) % around;
    places[1] = (bin->view + 2 * around - (shifted + 1) / 2 + around / 2) % around;
}

/* The other way round, for two different places. Returns whether places[1] is det1. */
static inline bool lr_sinogram_bin_of(int around, const int places[2], struct lr_sinogram_bin *bin)
{
    const int apart = (places[0] - places[1] + around + around / 2) % around; /* t mod around */
    const int t = apart >= around / 2 ? apart - around : apart;
    const int view = (places[0] - (t + 2 * around) / 2 + 2 * around) % around;
    const bool swapped = view >= around / 2;
    bin->view = swapped ? view - around / 2 : view;
    bin->t = swapped ? -t : t;
    return swapped;
}

/* The crystals of a bin in rings[0] (det1) and rings[1] (det2), -1 for virtual ones. */
static inline void lr_sinogram_crystals(const struct lr_sinogram_rings *rings, const int places[2], const int ring[2],
                                        int32_t crystals[2])
{
    crystals[0] = rings->crystals[(int64_t)ring[0] * rings->around + places[0]];
    crystals[1] = rings->crystals[(int64_t)ring[1] * rings->around + places[1]];
}

#endif
