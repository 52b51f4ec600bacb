/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Tests whether a line comes near a set of voxels. Each coarse cell of the grid holds the distance to the nearest cell
 * that contains a voxel of the set. A line is followed in steps of these distances (sphere tracing, Hart 1996). */
#pragma once

#include <lr/grid.h>
#include <lr/log.h>

struct lr_listmode_region {
    double low_mm[3], high_mm[3]; /* two opposite corners of the box of cells */
    double cell_mm[3], least_mm;  /* edges of a cell; the shortest step */
    int size[3];                  /* numbers of cells */
    float *gap_mm;                /* owned [cells, x fastest] distance to the nearest cell with a voxel of the set */
};

/* A set of voxels: all voxels of one or two grids that have a label. */
struct lr_listmode_labelled {
    lr_grid grids[2];
    int num_grids;
    const unsigned char *labels; /* [voxels of all grids, first grid first] */
    unsigned char label;
    int first[3], last[3]; /* the box that is searched: first voxel, and one after the last; not used with two grids */
};

/* Makes the cells of a set of voxels. Call the finish function even after an error. threads: positive. errors:
 * LR_FAILED if memory runs out. */
lr_status lr_listmode_region_init(struct lr_listmode_region *region, const struct lr_listmode_labelled *voxels,
                                  int threads, const lr_log *log);
void lr_listmode_region_finish(struct lr_listmode_region *region);

/* Returns true if a point between a and b is at most reach_mm from a voxel of the set. The result can also be true if
   the distance is slightly larger. */
bool lr_listmode_region_is_near(const struct lr_listmode_region *region, const double a[3], const double b[3],
                                double reach_mm);
