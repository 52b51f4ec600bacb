/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Solid angle and volume of a scanner's crystals. */
#include <lr/design.h>

#include "base/units.h"
#include "base/vec.h"

#include <math.h>

/* The solid angle of the rectangle from the foot of the perpendicular to (x, y), seen from the height h above it. */
static double corner_angle(double x, double y, double h)
{
    return atan2(x * y, h * sqrt(x * x + y * y + h * h));
}

double lr_scanner_coverage(const lr_scanner *scanner, const double point_mm[3])
{
    double sum = 0.0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        double away[3];
        for (int k = 0; k < 3; k++) away[k] = module->centre_mm[k] - point_mm[k];
        const double height = -vec_dot(away, module->normal);
        if (module->layer > 0 || !(height > 0.0)) continue;
        const double middle[2] = {vec_dot(away, module->u), vec_dot(away, module->v)};
        for (int q = 0; q < module->crystals[1]; q++) {
            for (int p = 0; p < module->crystals[0]; p++) {
                double low[2], high[2];
                for (int k = 0; k < 2; k++) {
                    const double from_middle = (k == 0 ? p : q) - 0.5 * (module->crystals[k] - 1);
                    const double centre = middle[k] + from_middle * module->pitch_mm[k];
                    low[k] = centre - 0.5 * module->face_mm[k];
                    high[k] = centre + 0.5 * module->face_mm[k];
                }
                sum += corner_angle(high[0], high[1], height) - corner_angle(low[0], high[1], height) -
                       corner_angle(high[0], low[1], height) + corner_angle(low[0], low[1], height);
            }
        }
    }
    return sum / (4.0 * LR_PI);
}

double lr_scanner_crystal_volume(const lr_scanner *scanner)
{
    double sum = 0.0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        sum += (double)module->crystals[0] * module->crystals[1] * module->face_mm[0] * module->face_mm[1] *
               module->depth_mm;
    }
    return sum;
}

void lr_image_axial_profile(const lr_image *image, double *profile)
{
    const lr_grid *grid = &image->grid;
    const int64_t plane = (int64_t)grid->size[0] * grid->size[1];
    const double most = 1.5 * fmax(grid->voxel_mm[0], grid->voxel_mm[1]);
    for (int z = 0; z < grid->size[2]; z++) {
        double sum = 0.0, count = 0.0;
        for (int64_t row = z * plane; row < (z + 1) * plane; row++) {
            double at[3];
            lr_grid_voxel_centre(grid, row, at);
            const double is_near = hypot(at[0], at[1]) <= most ? 1.0 : 0.0;
            sum += is_near * image->values[row];
            count += is_near;
        }
        profile[z] = count > 0.0 ? sum / count : NAN;
    }
}

void lr_image_radial_profile(const lr_image *image, double *profile, int count)
{
    const lr_grid *grid = &image->grid;
    const int64_t plane = (int64_t)grid->size[0] * grid->size[1];
    const double z = fmin(fmax(round(-grid->origin_mm[2] / grid->voxel_mm[2]), 0.0), grid->size[2] - 1);
    for (int n = 0; n < count; n++) {
        double sum = 0.0, seen = 0.0;
        for (int64_t row = (int64_t)z * plane; row < ((int64_t)z + 1) * plane; row++) {
            double at[3];
            lr_grid_voxel_centre(grid, row, at);
            const double is_near = (int)(hypot(at[0], at[1]) / grid->voxel_mm[0]) == n ? 1.0 : 0.0;
            sum += is_near * image->values[row];
            seen += is_near;
        }
        profile[n] = seen > 0.0 ? sum / seen : NAN;
    }
}
