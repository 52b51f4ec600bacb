/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * From what a caller asks of an operator to what a backend is given. */
#ifndef LR_OPERATOR_SETTINGS_H
#define LR_OPERATOR_SETTINGS_H

#include "operator/backend.h"

#include <lr/grid.h>
#include <lr/scanner.h>

/* --- the grid against the scanner --- */

/* Refuses a grid that misses the scanner, and warns once of voxels beyond the detectors, and of a
 * grid so small that its unit must be another.
 *
 * A voxel lies beyond the detectors when one plane has all its sample points on one side and all
 * modules (their rectangles on the detection plane) on the other: no line between two modules can
 * then pass a sample point, and A = 0. The planes tried are those across the three axes and across
 * the axes and normals of every module, so for a ring the voxels counted are those outside its
 * polygon or its length; some in the wedges between two neighbouring panels are not counted.
 *
 * samples: points per voxel along each axis. The work grows with ny nz times the number of
 * distinct directions, not with the number of voxels.
 * errors: LR_BAD_INPUT when every voxel lies beyond; LR_FAILED if memory runs out. */
lr_status lr_coverage_check(const lr_grid *grid, const int samples[3], const lr_scanner *scanner, const lr_log *log);

/* Warns, with the place, of a sample point of the grid, or of single points (points_mm, then grid is
 * NULL), that lies so near a module's detection plane, before or behind its rectangle, that single
 * precision on a device is not enough: within 0.3 mm elements of compute are up to 1e-3 off, and within
 * micrometres most are lost. */
void lr_coverage_warn_near(const lr_grid *grid, const int samples[3], const lr_scanner *scanner, const lr_log *log);
void lr_coverage_warn_near_points(const double (*points_mm)[3], int64_t num_points, const lr_scanner *scanner,
                                  const lr_log *log);

/* Checks everything that does not depend on the backend and replaces every default.
 * grid: receives the copy of params->grid that settings->grid then points to; must live as long.
 * log: where sentences go, here and later (params->log is not used).
 * errors: LR_USAGE, LR_BAD_INPUT (grid, mu), LR_FAILED. */
lr_status lr_settings_complete(const lr_operator_params *params, const lr_log *log, lr_grid *grid,
                               struct lr_backend_params *settings);

#endif
