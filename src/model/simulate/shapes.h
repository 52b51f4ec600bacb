/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Cylinders and spheres added into an image. */
#ifndef LR_MODEL_SHAPES_H
#define LR_MODEL_SHAPES_H

#include <lr/grid.h>

/* Adds `activity` times the share of each voxel that lies in a disc in the xy plane, in all slices:
 * a cylinder along z as long as the grid. The share is counted over subsamples^2 points, which for
 * a shape without a z dependence is the same as subsamples^3. Millimetres, the scanner's frame. */
void lr_draw_cylinder(lr_image *image, const double centre_mm[2], double radius_mm, double activity,
                      int subsamples);

/* As above for a sphere, over subsamples^3 points. Parts beyond the grid are not drawn. */
void lr_draw_sphere(lr_image *image, const double centre_mm[3], double radius_mm, double activity,
                    int subsamples);

#endif
