/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The numbering of crystals and of crystal pairs (bins) in sinograms without arc correction, for a scanner of full
 * rings. This is STIR's numbering (ProjDataInfoCylindricalNoArcCorr), which Siemens also uses.
 *
 * A ring has an even number of places, which include virtual ones between the modules. Place numbers increase with the
 * angle. Place 0 is at 90 degrees in LORaster's frame plus a view offset. Ring numbers increase towards -z of
 * LORaster's frame. STIR's x, y and z all point opposite to LORaster's: x = R sin(psi), y = -R cos(psi), z = ring *
 * pitch with psi = 360 place / places + offset. */
#pragma once

#include <lr/lors.h>
#include <math.h>

/* Numbers of virtual places per module. A virtual place has no crystal. Around the axis, half of the virtual places
 * come before the module's crystals and half after them. If the number is odd, one more comes before, as on Siemens
 * scanners. Along the axis, virtual places are between module rings. */
struct lr_sinogram_gaps {
    int around, axial;
};

struct lr_sinogram_rings {
    int around, rings;      /* around: places per ring; rings: number of rings; both include virtual ones */
    int modules;            /* number of modules around the ring; all have the same number of places */
    int32_t *crystals;      /* owned [rings][around]: number in the whole scanner; -1 = none */
    double first_angle_deg; /* angle of place 0 in LORaster's frame */
    double radius_mm;       /* distance from the axis to the centres of the front faces */
    double ring_pitch_mm;
};

/* Finds the gaps whose places fit the crystals best. A scanner whose crystals form no rings has no gaps. errors:
 * LR_FAILED, logged, if memory runs out. */
lr_status lr_sinogram_gaps_of(const lr_scanner *scanner, struct lr_sinogram_gaps *gaps, const lr_log *log);

/* Finds the gaps that give wanted[0] places per ring and wanted[1] rings. errors: LR_BAD_INPUT if no gaps give these
 * numbers. */
lr_status lr_sinogram_gaps_for(const lr_scanner *scanner, const int64_t wanted[2], struct lr_sinogram_gaps *gaps,
                               const char *what, const lr_log *log);

/* Numbers the crystals. Place 0 is the first place of the modules at position 0. `what`: name of the data, for
 * messages. errors: LR_BAD_INPUT for a scanner that is not made of full rings of equal modules. */
lr_status lr_sinogram_rings_create(struct lr_sinogram_rings *rings, const lr_scanner *scanner,
                                   const struct lr_sinogram_gaps *gaps, const char *what, const lr_log *log);

/* Turns the numbering, so that place `steps` becomes place 0. errors: LR_FAILED if memory runs out. */
lr_status lr_sinogram_rings_turn(struct lr_sinogram_rings *rings, int steps, const lr_log *log);

/* Frees everything that the struct owns. A struct of zeros is allowed. */
void lr_sinogram_rings_finish(struct lr_sinogram_rings *rings);

/* Wraps an angle to -180 .. 180 degrees. */
static inline double lr_wrapped_deg(double angle_deg)
{
    return angle_deg - 360.0 * floor((angle_deg + 180.0) / 360.0);
}

/* Bin coordinates: view 0 .. around / 2 - 1, tangential position t with abs(t) < around / 2. */
struct lr_sinogram_bin {
    int view, t;
};

/* The two places of a bin. The first one is det1. */
static inline void lr_sinogram_places(int around, const struct lr_sinogram_bin *bin, int places[2])
{
    /* Computes floor(t / 2) and floor((t + 1) / 2) without dividing negative numbers. */
    const int shifted = bin->t + 2 * around;
    places[0] = (bin->view + shifted / 2) % around;
    places[1] = (bin->view + 2 * around - (shifted + 1) / 2 + around / 2) % around;
}

/* The bin of two different places. Returns true if places[1] is det1. */
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

/* The two crystals of a bin: places[0] in ring[0] (det1), and places[1] in ring[1] (det2). -1 = virtual. */
static inline void lr_sinogram_crystals(const struct lr_sinogram_rings *rings, const int places[2], const int ring[2],
                                        int32_t crystals[2])
{
    crystals[0] = rings->crystals[(int64_t)ring[0] * rings->around + places[0]];
    crystals[1] = rings->crystals[(int64_t)ring[1] * rings->around + places[1]];
}
