/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A panel being fitted: what crystal_axes.c and crystal_fit.c share. */
#ifndef LR_MODEL_CRYSTAL_FIT_H
#define LR_MODEL_CRYSTAL_FIT_H

#include "model/scanner/crystal_panels.h"

/* A panel being fitted, crystals filling a grid of n[0] x n[1] places: row axes[0] = u, axes[1] = v, axes[2] = outward normal. */
struct lr_crystal_fit {
    const struct lr_crystal_panel *panel;
    const lr_crystal *crystals;
    int (*places)[2];
    int n[2];
    double mean[3];
    double axes[3][3];
    double size_mm[3]; /* along the axes; 0 = not known */
    double *lines[2];  /* [n] mean coordinate of the crystals of a column, of a row */
    double scatter_mm; /* largest distance of a crystal from its lines' crossing in the plane */
    double snap_mm;
    int *starts[2]; /* [num_segments + 1] first line of each uniform piece */
    int num_segments[2];
    int *segment_of[2];       /* [n] the piece that a line is in */
    double *middles_mm[2];    /* [num_segments] mean of its lines */
    double *pitches_mm[2];    /* [num_segments] step from line to line within each */
    double least_pitch_mm[2]; /* of all pieces */
};

/* Moves the places to begin at 0 and counts them into n; false where the crystals do not fill the
 * grid, one each. */
bool lr_crystal_fit_places(struct lr_crystal_fit *fit);

/* Width that crystals of a panel of one line may have along an axis so that the next panel's crystals, which look
 * at the scanner's axis too, have as much; the list's spacing where there are none near. */
double lr_crystal_fit_room(const struct lr_crystal_fit *fit, int axis);

/* Sets mean and axes: v is the direction of the grid nearer to z, upwards, and u = v x outward as
 * in a ring; places are turned to run along u and v. False for a panel without a plane. */
bool lr_crystal_fit_axes(struct lr_crystal_fit *fit);

#endif
