/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Figures of a scanner's crystals (solid angle, size, volume, stopped photons), and mean profiles of an image along the
 * scanner's axis and away from it. */
#include "model/scanner/scanner.h"

#include "base/units.h"
#include "base/vec.h"

#include <lr/design.h>

#include <math.h>
#include <stdlib.h>

/* Returns the solid angle of the rectangle with the opposite corners (0, 0) and (x, y), seen from the height h above
   (0, 0). */
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

/* Distance of the z axis from the front face, which may lean. 0 if the axis goes through the face. */
static double axis_distance_mm(const lr_module *module)
{
    static const int around[] = {0, 1, 3, 2, 0};
    double nearest_mm = INFINITY;
    int turns = 0; /* edges that go around the axis to the left, less those to the right */
    for (int k = 0; k < 4; k++) {
        double a[3], b[3];
        lr_module_corner(module, module->centre_mm, around[k], a);
        lr_module_corner(module, module->centre_mm, around[k + 1], b);
        const double edge[2] = {b[0] - a[0], b[1] - a[1]}, square = edge[0] * edge[0] + edge[1] * edge[1];
        const double along = square > 0.0 ? -(a[0] * edge[0] + a[1] * edge[1]) / square : 0.0;
        const double t = fmin(fmax(along, 0.0), 1.0), side = a[0] * b[1] - a[1] * b[0];
        nearest_mm = fmin(nearest_mm, hypot(a[0] + t * edge[0], a[1] + t * edge[1]));
        turns += (side > 0.0) - (side < 0.0);
    }
    return abs(turns) == 4 ? 0.0 : nearest_mm;
}

lr_scanner_figures lr_scanner_measure(const lr_scanner *scanner)
{
    lr_scanner_figures figures = {.num_layers = lr_scanner_num_layers(scanner), .inner_radius_mm = INFINITY};
    double met = 0.0, passed = 0.0;
    for (int k = 0; k < 3; k++) {
        figures.low_mm[k] = INFINITY;
        figures.high_mm[k] = -INFINITY;
    }
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double area_mm2 =
            (double)module->crystals[0] * module->crystals[1] * module->face_mm[0] * module->face_mm[1];
        figures.inner_radius_mm = fmin(figures.inner_radius_mm, axis_distance_mm(module));
        figures.crystal_volume_mm3 += area_mm2 * module->depth_mm;
        for (int k = 0; k < 3; k++) {
            const double half_mm = lr_module_half_mm(module, k);
            figures.low_mm[k] = fmin(figures.low_mm[k], module->centre_mm[k] - half_mm);
            figures.high_mm[k] = fmax(figures.high_mm[k], module->centre_mm[k] + half_mm);
        }
        if (module->layer > 0) continue;
        double paths = 0.0; /* sum of mu times depth over all layers of the block */
        const bool is_alone = module->block == 0;
        for (int k = is_alone ? m : 0; k < (is_alone ? m + 1 : scanner->num_modules); k++)
            if (scanner->modules[k].block == module->block)
                paths += lr_module_mu_per_mm(scanner, k) * scanner->modules[k].depth_mm;
        met += area_mm2;
        passed += area_mm2 * exp(-paths);
    }
    figures.stopped = lr_scanner_knows_mu(scanner) ? 1.0 - passed / met : NAN;
    return figures;
}

void lr_image_axial_profile(const lr_image *image, double *profile)
{
    const lr_grid *grid = &image->grid;
    const int64_t plane = (int64_t)grid->size[0] * grid->size[1];
    const double most = 1.5 * fmax(grid->voxel_mm[0], grid->voxel_mm[1]);
    for (int z = 0; z < grid->size[2]; z++) {
        double sum = 0.0;
        int64_t count = 0;
        for (int64_t row = z * plane; row < (z + 1) * plane; row++) {
            double at[3];
            lr_grid_voxel_centre(grid, row, at);
            if (hypot(at[0], at[1]) > most) continue;
            sum += image->values[row];
            count++;
        }
        profile[z] = count > 0 ? sum / (double)count : NAN;
    }
}

void lr_image_radial_profile(const lr_image *image, double *profile, int count)
{
    const lr_grid *grid = &image->grid;
    const int64_t plane = (int64_t)grid->size[0] * grid->size[1];
    const double z = fmin(fmax(round(-grid->origin_mm[2] / grid->voxel_mm[2]), 0.0), grid->size[2] - 1);
    for (int n = 0; n < count; n++) {
        double sum = 0.0;
        int64_t seen = 0;
        for (int64_t row = (int64_t)z * plane; row < ((int64_t)z + 1) * plane; row++) {
            double at[3];
            lr_grid_voxel_centre(grid, row, at);
            if ((int)(hypot(at[0], at[1]) / grid->voxel_mm[0]) != n) continue;
            sum += image->values[row];
            seen++;
        }
        profile[n] = seen > 0 ? sum / (double)seen : NAN;
    }
}
