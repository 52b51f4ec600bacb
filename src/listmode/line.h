/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The line of an event and its crossings of the slices of a grid: docs/method/listmode.md, "Lines". */
#pragma once

#include "base/vec.h"
#include "listmode/backend.h"

/* LR_LISTMODE_CUT: number of standard deviations at which the Gaussian of time of flight is cut off. LR_LISTMODE_HELD:
 * integral of the Gaussian within this cut. */
#define LR_LISTMODE_CUT 3.0
#define LR_LISTMODE_HELD 0.99730020393673981

/* The line of an event. Positions along a line are in mm from its middle, positive in the direction in which the
 * coordinate along `axis` grows. */
struct lr_listmode_line {
    int axis;
    double middle[3];
    double direction[3]; /* unit vector; direction[axis] > 0 */
    double half_mm;      /* distance from the middle to either end */
    double tof_mm;       /* centre of the time of flight; 0 if there is none */
    double sigma_mm;     /* 0 if there is no time of flight */
    double bin_mm;       /* width of the bin around tof_mm */
};

/* Returns the axis along which a line is longest; the first of several equal ones. The order of the ends does not
 * matter. */
static inline int lr_listmode_axis(const double a[3], const double b[3])
{
    const double run[3] = {fabs(b[0] - a[0]), fabs(b[1] - a[1]), fabs(b[2] - a[2])};
    const int axis = run[1] > run[0] ? 1 : 0;
    return run[2] > run[axis] ? 2 : axis;
}

/* Finds the line of the event at index k of the arrays. axis: the axis of the event's group. */
static inline void lr_listmode_line_of(const struct lr_listmode_events *events, int64_t k, int axis,
                                       struct lr_listmode_line *line)
{
    const int32_t crystals[2] = {events->crystals[0][k], events->crystals[1][k]};
    const double *a = events->hits[crystals[0]], *b = events->hits[crystals[1]];
    double along[3];
    vec_sub(b, a, along);
    const double length = vec_length(along);
    const double scale = (along[axis] < 0 ? -1.0 : 1.0) / length;
    line->axis = axis;
    line->half_mm = 0.5 * length;
    for (int n = 0; n < 3; n++) {
        line->middle[n] = 0.5 * (a[n] + b[n]);
        line->direction[n] = scale * along[n];
    }
    line->sigma_mm = lr_listmode_sigma(events, crystals);
    line->bin_mm = lr_listmode_bin(events, crystals);
    const double sign = b[axis] < a[axis] ? -1.0 : 1.0;
    line->tof_mm = line->sigma_mm > 0 ? sign * (double)events->tof_mm[k] : 0.0;
}

/* A line relative to the grid's slices across its axis. The middle of slice s is at place + s chord along the line. The
 * line crosses this slice at position[k] + s step[k] along axis across[k], in voxels from the centre of the first
 * voxel. */
struct lr_listmode_walk {
    int across[2]; /* the two axes across the line's axis, ascending */
    int size;      /* number of slices */
    double place, chord;
    double position[2], step[2];
    double begin, end; /* positions between which the line has elements: the ends of the line, or the cut of the time of
                          flight */
};

static inline void lr_listmode_walk_of(const struct lr_listmode_line *line, const lr_grid *grid,
                                       struct lr_listmode_walk *walk)
{
    const int axis = line->axis;
    const double along = 1.0 / line->direction[axis];
    walk->across[0] = axis == 0 ? 1 : 0;
    walk->across[1] = axis == 2 ? 1 : 2;
    walk->size = grid->size[axis];
    walk->chord = grid->voxel_mm[axis] * along;
    walk->place = (grid->origin_mm[axis] - line->middle[axis]) * along;
    for (int k = 0; k < 2; k++) {
        const int c = walk->across[k];
        const double per_voxel = line->direction[c] / grid->voxel_mm[c];
        walk->step[k] = walk->chord * per_voxel;
        walk->position[k] = (line->middle[c] - grid->origin_mm[c]) / grid->voxel_mm[c] + walk->place * per_voxel;
    }
    walk->begin = -line->half_mm;
    walk->end = line->half_mm;
    if (line->sigma_mm > 0) {
        const double reach = LR_LISTMODE_CUT * line->sigma_mm + 0.5 * line->bin_mm;
        walk->begin = fmax(walk->begin, line->tof_mm - reach);
        walk->end = fmin(walk->end, line->tof_mm + reach);
    }
}

/* Finds the slices of the grid that a line may cross between begin and end: first, and one after the last. */
static inline void lr_listmode_slices(const struct lr_listmode_walk *walk, int slices[2])
{
    const double first = floor((walk->begin - walk->place) / walk->chord + 0.5);
    const double last = floor((walk->end - walk->place) / walk->chord + 0.5);
    slices[0] = (int)fmin(fmax(first, 0.0), walk->size);
    slices[1] = (int)fmin(fmax(last + 1.0, 0.0), walk->size);
}

/* --- tubes of response, and the sizes of elements (model.c) --- */

/* Let d be half of the tube's width. If the squared distance is d^2 (1 + LR_LISTMODE_RIM) or more, shares are 0.
 * Between d^2 and this limit, shares fall to 0, as a linear function of the squared distance. Because of this rim,
 * rounding hardly changes the shares of voxels whose centres are on the tube's surface. */
#define LR_LISTMODE_RIM 1e-3

/* Returns the square of the largest distance at which there are shares. */
static inline double lr_listmode_rim(const lr_listmode_tube *tube)
{
    return 0.25 * tube->width_mm * tube->width_mm * (1.0 + LR_LISTMODE_RIM);
}

/* Returns the tube's function at a distance. Beyond half the width, it is constant. */
double lr_listmode_tube_value(const lr_listmode_tube *tube, double distance_mm);

/* Returns the tube's table in single precision, in the form that devices read. The last entry is repeated, because
 * linear interpolation at that entry reads the next one, too. The caller frees the table. errors: NULL if memory runs
 * out. */
float *lr_listmode_tube_table(const lr_listmode_tube *tube, const lr_log *log);

/* Finds the rectangle around the ellipse in which a slice's middle plane cuts the tube (the paper, II.B.3). Results:
 * half the edges of the rectangle, in voxels along walk->across. */
void lr_listmode_tube_halves(const struct lr_listmode_model *model, const struct lr_listmode_line *line,
                             const struct lr_listmode_walk *walk, double halves[2]);

/* Returns the slice across `axis` that contains the centre of an event's time of flight. k: index of the event in the
 * arrays. The slice can be outside the grid. */
double lr_listmode_centre_slice(const struct lr_listmode_model *model, const struct lr_listmode_events *events,
                                int64_t k, int axis);

/* Returns the largest distance, in slices, between an event's centre and its elements, plus one slice for rounding. */
double lr_listmode_reach_slices(const struct lr_listmode_model *model, const struct lr_listmode_events *events,
                                int axis);

/* Finds the slices of the grid that events range[0] .. range[1] - 1 may cross: first, and one after the last. The
 * events are of one group with time of flight. */
void lr_listmode_range_slices(const struct lr_listmode_model *model, const struct lr_listmode_events *events,
                              const int64_t range[2], int axis, int slices[2]);

/* Returns the smallest standard deviation of time of flight of all events, mm; infinite if no event has time of
 * flight. */
double lr_listmode_least_sigma_mm(const struct lr_listmode_events *events);

/* Returns the approximate largest density of time of flight of all events, per mm; 0 if no event has time of flight. */
double lr_listmode_largest_density(const struct lr_listmode_events *events);

/* Returns the approximate largest element of a slice across an axis, for tubes and thin lines. The result is a tenth
 * larger than the largest element of lines along the axis, because an oblique line can give a voxel a larger share. */
double lr_listmode_largest_element(const struct lr_listmode_model *model, const struct lr_listmode_events *events,
                                   int axis, bool has_tof);
