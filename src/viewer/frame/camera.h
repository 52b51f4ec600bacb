/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The camera, which turns about a place at a distance, and what a ray through the picture hits. Frame and units as
 * everywhere: mm, right-handed, z along the scanner's axis. */
#ifndef LR_VIEWER_CAMERA_H
#define LR_VIEWER_CAMERA_H

#include <lr/grid.h>
#include <lr/scanner.h>
#include <stdbool.h>

struct camera {
    double at_mm[3];             /* the place looked at */
    double distance_mm;          /* from it */
    double turn_deg, height_deg; /* where it is seen from: about z from x, and above the xy plane */
    double reach_mm;             /* radius of what there is to see */
};

/* Looks from the side and above at all that is within a radius. aspect: the picture's width to height. */
void camera_fit(struct camera *camera, double reach_mm, double aspect);

/* Movements of a mouse, in shares of the picture's height. */
void camera_orbit(struct camera *camera, double right, double down);
void camera_pan(struct camera *camera, double right, double down);
void camera_zoom(struct camera *camera, double steps); /* positive: nearer */

/* Looks along an axis: 0 x, 1 y, 2 z. */
void camera_along(struct camera *camera, int axis);

struct camera_view {
    float clip_of_world[16]; /* column after column */
    float eye_mm[3];
    float right[3], up[3], forward[3];
    double tangent; /* half the picture's height at distance 1 */
    double aspect;
};
void camera_view(const struct camera *camera, double aspect, struct camera_view *view);

/* Direction of the ray through a place of the picture, 0 .. 1 from its left and its top. */
void camera_ray(const struct camera_view *view, const double place[2], double direction[3]);

/* The place of a point in the picture, 0 .. 1 from the left and top; false: it is behind the eye. */
bool camera_project(const struct camera_view *view, const double point_mm[3], double place[2]);

/* --- rays --- */

struct pick_ray {
    double from_mm[3], direction[3];
};

struct pick_hit {
    int module;     /* -1: none */
    int crystal[2]; /* p, q; -1 in a gap between faces */
    double share;   /* of `direction` */
    double point_mm[3];
};

/* The nearest front face that is turned to where the ray comes from: those that are drawn. */
struct pick_hit pick_module(const lr_scanner *scanner, const struct pick_ray *ray);

/* The point in which the ray crosses the grid's slice across `axis` at `at_mm`; false: it does not. */
bool pick_slice(const lr_grid *grid, const struct pick_ray *ray, int axis, double at_mm, double point_mm[3]);

/* The voxel that holds a point; false: none. */
bool pick_voxel(const lr_grid *grid, const double point_mm[3], int voxel[3]);

#endif
