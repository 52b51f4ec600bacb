/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/study.h"

#include "base/vec.h"

enum { ACROSS = 64, MOST_SLICES = 256 };

/* Kept off the faces, on which an element is without bounds. */
static const double within = 0.98;

static void find_middle(const lr_scanner *scanner, double middle_mm[3])
{
    middle_mm[0] = middle_mm[1] = middle_mm[2] = 0;
    for (int m = 0; m < scanner->num_modules; m++)
        vec_add_scaled(middle_mm, 1.0 / scanner->num_modules, scanner->modules[m].centre_mm, middle_mm);
}

/* How far a module's face reaches along an axis of the frame, on both sides of its centre. */
static double half_reach_mm(const lr_module *module, int axis)
{
    return 0.5 * (fabs(module->u[axis]) * module->crystals[0] * module->pitch_mm[0] +
                  fabs(module->v[axis]) * module->crystals[1] * module->pitch_mm[1]);
}

static void find_box(const lr_scanner *scanner, double low_mm[3], double high_mm[3])
{
    for (int k = 0; k < 3; k++) {
        low_mm[k] = HUGE_VAL;
        high_mm[k] = -HUGE_VAL;
        for (int m = 0; m < scanner->num_modules; m++) {
            const lr_module *module = &scanner->modules[m];
            const double half_mm = half_reach_mm(module, k);
            low_mm[k] = fmin(low_mm[k], module->centre_mm[k] - half_mm);
            high_mm[k] = fmax(high_mm[k], module->centre_mm[k] + half_mm);
        }
    }
}

/* Radius of a sphere about the middle that lies before all faces. */
static double free_radius_mm(const lr_scanner *scanner, const double middle_mm[3])
{
    double radius_mm = HUGE_VAL;
    for (int m = 0; m < scanner->num_modules; m++) {
        double to_middle[3];
        vec_sub(middle_mm, scanner->modules[m].centre_mm, to_middle);
        radius_mm = fmin(radius_mm, fabs(vec_dot(scanner->modules[m].normal, to_middle)));
    }
    return radius_mm;
}

/* Half the edge of the square in x and y. Corners may leave the field of view, but not without one
 * go into modules. */
static double half_edge_mm(const lr_scanner *scanner, const double middle_mm[3])
{
    const double radius_mm = within * free_radius_mm(scanner, middle_mm);
    const double view_mm = scanner->coincidence.field_of_view_mm;
    return view_mm > 0 ? fmin(0.5 * view_mm, radius_mm) : radius_mm * sqrt(0.5);
}

lr_grid study_default_grid(const lr_scanner *scanner)
{
    lr_grid grid = {.size = {1, 1, 1}};
    double middle_mm[3], low_mm[3], high_mm[3], length_mm[3];
    find_middle(scanner, middle_mm);
    find_box(scanner, low_mm, high_mm);
    const double half_mm = half_edge_mm(scanner, middle_mm);
    for (int k = 0; k < 3; k++) {
        if (k < 2) {
            low_mm[k] = fmax(low_mm[k], middle_mm[k] - half_mm);
            high_mm[k] = fmin(high_mm[k], middle_mm[k] + half_mm);
        }
        length_mm[k] = fmax(within * (high_mm[k] - low_mm[k]), 1e-3);
    }
    const double voxel_mm = fmax(length_mm[0], length_mm[1]) / ACROSS;
    for (int k = 0; k < 3; k++) {
        const int most = k < 2 ? ACROSS : MOST_SLICES;
        const double count = floor(length_mm[k] / voxel_mm + 0.5);
        grid.size[k] = count < 1 ? 1 : count > most ? most : (int)count;
        grid.voxel_mm[k] = length_mm[k] / grid.size[k];
        grid.origin_mm[k] = 0.5 * (low_mm[k] + high_mm[k]) - 0.5 * (grid.size[k] - 1) * grid.voxel_mm[k];
    }
    return grid;
}
