/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Figures of a scanner's crystals (solid angle, size, volume, stopped photons), and mean profiles of an image along the
 * scanner's axis and away from it. Grids that do not suit a scanner. */
#include "model/scanner/scanner.h"

#include "base/log.h"
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

bool lr_grid_warn_slip(const lr_grid *grid, const lr_scanner *scanner, const lr_log *log)
{
    const lr_scanner_figures box = lr_scanner_measure(scanner);
    double field_mm[3], span_mm[3], middle_mm[3], off_mm = 0.0, pitch_mm = INFINITY;
    int num_cornered = 0; /* of the axes x and y: those on which the grid begins or ends in the scanner's middle */
    bool is_tiny = lr_grid_num_voxels(grid) > 1, is_shifted = false;
    for (int k = 0; k < 3; k++) {
        const double voxel_mm = grid->voxel_mm[k];
        field_mm[k] = grid->size[k] * voxel_mm;
        span_mm[k] = box.high_mm[k] - box.low_mm[k];
        is_tiny = is_tiny && field_mm[k] < span_mm[k] / 8;
        middle_mm[k] = grid->origin_mm[k] + 0.5 * (field_mm[k] - voxel_mm);
        const double off = fabs(middle_mm[k] - 0.5 * (box.low_mm[k] + box.high_mm[k]));
        off_mm = hypot(off_mm, off);
        num_cornered += k < 2 && grid->size[k] > 3 && fabs(off - 0.5 * field_mm[k]) < 0.51 * voxel_mm;
        /* The grid fits between the detectors, but reaches beyond them. */
        is_shifted = is_shifted || (field_mm[k] <= span_mm[k] + voxel_mm && off > 0.25 * span_mm[k] &&
                                    off + 0.5 * field_mm[k] > 0.5 * span_mm[k] + voxel_mm);
    }
    for (int m = 0; m < scanner->num_modules; m++)
        pitch_mm = fmin(pitch_mm, fmin(scanner->modules[m].pitch_mm[0], scanner->modules[m].pitch_mm[1]));
    const double narrow_mm = fmin(field_mm[0], field_mm[1]), wide_mm = fmax(field_mm[0], field_mm[1]);
    const double bore_mm = fmin(span_mm[0], span_mm[1]), length_mm = span_mm[2];
    const bool is_rod =
        grid->size[0] > 1 && field_mm[2] > 2 * length_mm && field_mm[2] > 1.5 * wide_mm && wide_mm < bore_mm / 2;
    const bool is_upright = field_mm[2] > 1.2 * length_mm && field_mm[2] > 0.6 * wide_mm &&
                            narrow_mm < 1.2 * length_mm && narrow_mm < 0.6 * wide_mm; /* a disc that stands on edge */
    const char *slip = NULL;
    if (is_tiny && fmax(grid->voxel_mm[0], grid->voxel_mm[1]) < pitch_mm / 5) {
        /* Voxels of a region of interest are seldom finer than a fifth of a crystal. */
        slip = "were the voxels' edges given in cm or m? They are taken as mm";
    } else if (is_rod || is_upright) {
        slip = "are the grid's axes swapped? Sizes are in the order x, y, z, and z runs along the scanner's axis";
    } else if ((field_mm[0] > 2 * span_mm[0] && field_mm[1] > 2 * span_mm[1]) ||
               field_mm[2] > 4 * fmax(length_mm, bore_mm / 2)) {
        slip = "are the voxels 10 times too large? Their edges are in mm";
    }
    if (slip != NULL) {
        lr_warn(log,
                "voxels of %.4g x %.4g x %.4g mm make a field of %.4g x %.4g x %.4g mm, and the detectors span %.4g x "
                "%.4g x %.4g mm (x, y, z): %s",
                grid->voxel_mm[0], grid->voxel_mm[1], grid->voxel_mm[2], field_mm[0], field_mm[1], field_mm[2],
                span_mm[0], span_mm[1], span_mm[2], slip);
    } else if (num_cornered == 2 || is_shifted) {
        lr_warn(log,
                "the middle of the grid, (%.4g, %.4g, %.4g) mm, lies %.4g mm from the scanner's: is the grid's origin "
                "right, which is the centre of its first voxel?",
                middle_mm[0], middle_mm[1], middle_mm[2], off_mm);
    }
    return slip != NULL || num_cornered == 2 || is_shifted;
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
