/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/simulate/shapes.h"

#include <math.h>

/* Voxels along one axis that an interval centre - radius .. centre + radius touches. */
static void touched(const lr_grid *grid, int axis, double centre_mm, double radius_mm, int *begin,
                    int *end)
{
    const double origin = grid->origin_mm[axis], size = grid->voxel_mm[axis];
    const double low = floor((centre_mm - radius_mm - origin) / size);
    const double high = ceil((centre_mm + radius_mm - origin) / size) + 1.0;
    *begin = (int)fmin(fmax(low, 0.0), grid->size[axis]);
    *end = (int)fmin(fmax(high, 0.0), grid->size[axis]);
}

/* Squared distance, along one axis, of a voxel's sub-point from a coordinate. */
static double square_to(const lr_grid *grid, int axis, int voxel, int part, int subsamples,
                        double coordinate_mm)
{
    const double place = voxel + (part + 0.5) / subsamples - 0.5;
    const double away = grid->origin_mm[axis] + place * grid->voxel_mm[axis] - coordinate_mm;
    return away * away;
}

/* Sub-points of one voxel column's cross-section whose squared distance is at most `square`. */
static int count_in_disc(const lr_grid *grid, const int voxel[2], const double centre_mm[2],
                         double square, int subsamples)
{
    int inside = 0;
    for (int b = 0; b < subsamples; b++) {
        const double along_y = square_to(grid, 1, voxel[1], b, subsamples, centre_mm[1]);
        for (int a = 0; a < subsamples; a++) {
            inside += square_to(grid, 0, voxel[0], a, subsamples, centre_mm[0]) + along_y <= square;
        }
    }
    return inside;
}

static int count_in_sphere(const lr_grid *grid, const int voxel[3], const double centre_mm[3],
                           double square, int subsamples)
{
    int inside = 0;
    for (int c = 0; c < subsamples; c++) {
        const double along_z = square_to(grid, 2, voxel[2], c, subsamples, centre_mm[2]);
        inside += along_z <= square
                      ? count_in_disc(grid, voxel, centre_mm, square - along_z, subsamples)
                      : 0;
    }
    return inside;
}

void lr_draw_cylinder(lr_image *image, const double centre_mm[2], double radius_mm, double activity,
                      int subsamples)
{
    const lr_grid *grid = &image->grid;
    const int64_t slice = (int64_t)grid->size[0] * grid->size[1];
    int begin[2], end[2];
    for (int axis = 0; axis < 2; axis++) {
        touched(grid, axis, centre_mm[axis], radius_mm, &begin[axis], &end[axis]);
    }
    for (int iy = begin[1]; iy < end[1]; iy++) {
        for (int ix = begin[0]; ix < end[0]; ix++) {
            const int inside = count_in_disc(grid, (const int[2]){ix, iy}, centre_mm,
                                             radius_mm * radius_mm, subsamples);
            const double value = activity * inside / ((double)subsamples * subsamples);
            float *column = image->values + ix + (int64_t)grid->size[0] * iy;
            for (int iz = 0; inside > 0 && iz < grid->size[2]; iz++) {
                column[iz * slice] = (float)(column[iz * slice] + value);
            }
        }
    }
}

void lr_draw_sphere(lr_image *image, const double centre_mm[3], double radius_mm, double activity,
                    int subsamples)
{
    const lr_grid *grid = &image->grid;
    const double points = (double)subsamples * subsamples * subsamples;
    int begin[3], end[3];
    for (int axis = 0; axis < 3; axis++) {
        touched(grid, axis, centre_mm[axis], radius_mm, &begin[axis], &end[axis]);
    }
    for (int iz = begin[2]; iz < end[2]; iz++) {
        for (int iy = begin[1]; iy < end[1]; iy++) {
            for (int ix = begin[0]; ix < end[0]; ix++) {
                const int inside = count_in_sphere(grid, (const int[3]){ix, iy, iz}, centre_mm,
                                                   radius_mm * radius_mm, subsamples);
                float *value = image->values + ix +
                               (int64_t)grid->size[0] * (iy + (int64_t)grid->size[1] * iz);
                *value = (float)(*value + activity * inside / points);
            }
        }
    }
}
