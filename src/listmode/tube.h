/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The function of the distance to a tube's line, and the voxels that may be within the tube. */
#ifndef LR_LISTMODE_TUBE_H
#define LR_LISTMODE_TUBE_H

#include "listmode/backend.h"
#include "listmode/line.h"

/* Beyond half the width, shares fall to 0 within this part of it, linearly in the square of the distance. Rounding
 * therefore decides nothing for centres on the cylinder. */
#define LR_LISTMODE_RIM 1e-3

/* The square of the largest distance at which there are shares. */
static inline double lr_listmode_rim(const lr_listmode_tube *tube)
{
    return 0.25 * tube->width_mm * tube->width_mm * (1.0 + LR_LISTMODE_RIM);
}

/* The tube's function at a distance. Beyond half the width it keeps its value there. */
double lr_listmode_tube_value(const lr_listmode_tube *tube, double distance_mm);

/* Half of the rectangle around the ellipse in which a slice's middle cuts the tube, in voxels along
 * line's across axes (the paper, II.B.3). */
void lr_listmode_tube_halves(const struct lr_listmode_model *model, const struct lr_listmode_line *line,
                             const struct lr_listmode_walk *walk, double halves[2]);

/* The least standard deviation of time of flight of any event, mm; infinite if none has it. */
double lr_listmode_least_sigma_mm(const struct lr_listmode_events *events);

/* About the largest density of time of flight of any event, per mm; 0 if none has it. */
double lr_listmode_largest_density(const struct lr_listmode_events *events);

/* Approximate largest element of a slice across an axis. A tenth is added for oblique lines: they are nearer to the
 * voxels around, whose shares are then larger. Not for the exact kernel. */
double lr_listmode_largest_element(const struct lr_listmode_model *model, const struct lr_listmode_events *events,
                                   int axis, bool has_tof);

#endif
