/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A tube as a function of the distance to its line, the voxels that may be within the tube, and the slices in which
 * time of flight puts events. */
#ifndef LR_LISTMODE_TUBE_H
#define LR_LISTMODE_TUBE_H

#include "listmode/backend.h"
#include "listmode/line.h"

/* Beyond half of the tube's width, shares fall to 0, linearly in the square of the distance. This number is the
 * length of the fall, as a fraction of half the width. Rounding then hardly changes the shares of voxels whose
 * centres are on the tube's surface. */
#define LR_LISTMODE_RIM 1e-3

/* The square of the largest distance at which there are shares. */
static inline double lr_listmode_rim(const lr_listmode_tube *tube)
{
    return 0.25 * tube->width_mm * tube->width_mm * (1.0 + LR_LISTMODE_RIM);
}

/* The tube's function at a distance. Beyond half the width it has the value at half the width. */
double lr_listmode_tube_value(const lr_listmode_tube *tube, double distance_mm);

/* The tube's table in single precision, as devices read it. The last entry is repeated, because linear interpolation at
 * that entry reads the next one. The caller frees it. errors: NULL if memory runs out. */
float *lr_listmode_tube_table(const lr_listmode_tube *tube, const lr_log *log);

/* A slice's middle plane cuts the tube in an ellipse. The results are half the edges of the rectangle around the
 * ellipse, in voxels along walk->across (the paper, II.B.3). */
void lr_listmode_tube_halves(const struct lr_listmode_model *model, const struct lr_listmode_line *line,
                             const struct lr_listmode_walk *walk, double halves[2]);

/* The slice across `axis` in which time of flight puts the event at place k of the arrays; it may be beyond the grid. */
double lr_listmode_centre_slice(const struct lr_listmode_model *model, const struct lr_listmode_events *events,
                                int64_t k, int axis);

/* Largest distance, in slices, of an event's elements from its centre, plus one slice for rounding. */
double lr_listmode_reach_slices(const struct lr_listmode_model *model, const struct lr_listmode_events *events,
                                int axis);

/* Slices of the grid that events range[0] .. range[1] - 1 of a group with time of flight may cross: first, and one
 * after the last. */
void lr_listmode_range_slices(const struct lr_listmode_model *model, const struct lr_listmode_events *events,
                              const int64_t range[2], int axis, int slices[2]);

/* The smallest standard deviation of time of flight of all events, mm; infinite if no event has time of flight. */
double lr_listmode_least_sigma_mm(const struct lr_listmode_events *events);

/* Approximate largest density of time of flight of all events, per mm; 0 if no event has time of flight. */
double lr_listmode_largest_density(const struct lr_listmode_events *events);

/* Approximate largest element of a slice across an axis, for tubes and thin lines. It is a tenth larger than the
 * value for lines along the axis, because oblique lines give a voxel a larger share. */
double lr_listmode_largest_element(const struct lr_listmode_model *model, const struct lr_listmode_events *events,
                                   int axis, bool has_tof);

#endif
