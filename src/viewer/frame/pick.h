/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What lies under the mouse. */
#ifndef LR_VIEWER_PICK_H
#define LR_VIEWER_PICK_H

#include <lr/grid.h>
#include <lr/scanner.h>
#include <stdbool.h>

struct pick_ray {
    double from_mm[3], way[3];
};

struct pick_hit {
    int module;     /* -1: none */
    int crystal[2]; /* p, q; -1 in a gap between faces */
    double share;   /* of `way` */
    double point_mm[3];
};

/* The nearest front face that is turned to where the ray comes from: those that are drawn. */
struct pick_hit pick_module(const lr_scanner *scanner, const struct pick_ray *ray);

/* Where the ray meets the grid's slice across `axis` at `at_mm`; false: it does not. */
bool pick_slice(const lr_grid *grid, const struct pick_ray *ray, int axis, double at_mm, double point_mm[3]);

/* The voxel that holds a point; false: none. */
bool pick_voxel(const lr_grid *grid, const double point_mm[3], int voxel[3]);

#endif
