/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The region in which the exact kernel can have elements: the convex hull of a LOR's two faces, because every line
 * through both faces stays in it (docs/method/listmode.md, "Exact elements"). */
#pragma once

#include "listmode/backend.h"
#include "listmode/line.h"

#include <lr/scanner.h>

/* --- faces of crystals in the form that devices need for exact elements (docs/method/listmode.md) --- */

/* The axes of a module's faces. If one grid axis is an axis of every module, `along` is this axis. */
struct lr_listmode_module {
    double across[4], along[4]; /* fourth component: half of a face along this axis, mm */
    double normal[4];           /* inward; fourth component: 0 */
};

/* Returns the grid axis that is an axis of every module; -1 if there is none. */
int lr_listmode_shared_axis(const lr_scanner *scanner);

/* Returns the axes of all modules, [num_modules], which the caller frees. errors: NULL, logged, if memory runs out. */
struct lr_listmode_module *lr_listmode_modules(const lr_scanner *scanner, const lr_log *log);

/* A crystal's face on the detection plane. */
struct lr_listmode_face {
    int module, at[2];     /* module, and column and row of the crystal in the module */
    double centre[3];      /* mm */
    const double *axis[3]; /* the module's u, v and normal, which points inward */
    double half_mm[2];     /* along u and v */
};

enum { LR_LISTMODE_HULL_LINES = 16 };

struct lr_listmode_hull {
    const struct lr_listmode_model *model;
    struct lr_listmode_line line;
    struct lr_listmode_face faces[2]; /* faces of the event's first and second crystal */
    double extent_mm; /* extent of a voxel along the line: the length of an interval with the same variance as the
                         voxel's points along the line */
    /* Bounds of each face along the grid's axes. If the faces are apart along the line's axis, place and slope describe
     * the lines that join the corners of one face to those of the other. Along the k-th axis across the line's axis,
     * line n is at place[k][n] + slope[k][n] times the coordinate along the line's axis. */
    double low[2][3], high[2][3];
    bool are_apart;
    double place[2][LR_LISTMODE_HULL_LINES], slope[2][LR_LISTMODE_HULL_LINES];
};

/* Finds the hull of an event. at[0]: index of the event in the arrays. at[1]: axis of the event's group. */
void lr_listmode_hull_of(struct lr_listmode_hull *hull, const struct lr_listmode_model *model,
                         const struct lr_listmode_events *events, const int64_t at[2]);

/* Finds the slices across the axis that may have elements: the first, and one after the last. Slices that are too far
 * from the event's time of flight are left out. */
void lr_listmode_hull_slices(const struct lr_listmode_hull *hull, int slices[2]);

/* Finds the sample points of a slice that may have elements: first, and one after the last. Points are numbered along
 * each grid axis, over all voxels. */
void lr_listmode_hull_samples(const struct lr_listmode_hull *hull, int slice, int samples[3][2]);

/* Finds the sample points that may have elements in one plane across the axis. plane: number of the plane, counted over
 * all voxels. */
void lr_listmode_hull_plane(const struct lr_listmode_hull *hull, int plane, int samples[3][2]);

/* Returns the position of a voxel's centre along the line, in mm from the line's middle. */
static inline double lr_listmode_voxel_place(const struct lr_listmode_hull *hull, const int voxel[3])
{
    const lr_grid *grid = &hull->model->grid;
    double place = 0;
    for (int k = 0; k < 3; k++)
        place += (grid->origin_mm[k] + voxel[k] * grid->voxel_mm[k] - hull->line.middle[k]) * hull->line.direction[k];
    return place;
}

/* Returns the position along an axis of sample point `index`, counted over all voxels. */
static inline double lr_listmode_sample(const struct lr_listmode_model *model, int axis, int index)
{
    const double spacing = model->grid.voxel_mm[axis] / model->samples[axis];
    return model->grid.origin_mm[axis] - 0.5 * model->grid.voxel_mm[axis] + (index + 0.5) * spacing;
}
