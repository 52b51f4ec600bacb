/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The camera orbits a point at some distance. This file also describes the view of a pane, and finds the objects that a
 * ray through the picture hits. Frame and units are LORaster's: mm, right-handed, z along the scanner's axis. */
#pragma once

#include "picture/slice.h"

#include <lr/grid.h>
#include <lr/scanner.h>
#include <stdbool.h>

struct camera {
    double at_mm[3];             /* the point in the middle of the view */
    double distance_mm;          /* distance of the camera from at_mm */
    double turn_deg, height_deg; /* direction to the camera: angle about z from x, and angle above the xy plane */
    double reach_mm;             /* radius of the visible objects */
};

/* Places the camera to the side and above. It then shows everything within the radius. aspect: the picture's width
 * divided by its height. */
void camera_fit(struct camera *camera, double reach_mm, double aspect);

/* Moves the camera with the mouse. Distances are fractions of the picture's height. */
void camera_orbit(struct camera *camera, double right, double down);
void camera_pan(struct camera *camera, double right, double down);
void camera_zoom(struct camera *camera, double steps); /* positive: closer */

/* Looks along an axis: 0 x, 1 y, 2 z. */
void camera_along(struct camera *camera, int axis);

struct camera_view {
    float clip_of_world[16]; /* column-major */
    float eye_mm[3];
    float right[3], up[3], forward[3];
    double tangent; /* half the picture's height at unit distance */
    double aspect;
};
void camera_view(const struct camera *camera, double aspect, struct camera_view *view);

/* Direction of the ray through a point of the picture; coordinates are 0 .. 1 from its left and its top. */
void camera_ray(const struct camera_view *view, const double place[2], double direction[3]);

/* Projects a point into the picture, 0 .. 1 from its left and top. Returns false if the point is behind the eye. */
bool camera_project(const struct camera_view *view, const double point_mm[3], double place[2]);

/* --- panes --- */

/* A slice seen without perspective, oriented as in all pictures (picture/slice.h). Places are in pixels from the pane's
 * upper left corner. */
struct flat_view {
    int axis;            /* the slice is across this axis */
    double middle_mm[3]; /* the point in the middle of the pane */
    double pixel_mm;
    double size[2]; /* pixels */
};

/* Sets the view's matrix for the shaders. The other fields are set to zero. */
void flat_camera(const struct flat_view *flat, struct camera_view *view);

/* flat_point finds the point that is shown at a place, in the plane at `depth_mm`. flat_place finds the place at which
 * a point is shown. */
void flat_point(const struct flat_view *flat, const double place[2], double depth_mm, double point_mm[3]);
void flat_place(const struct flat_view *flat, const double point_mm[3], double place[2]);

/* --- rays --- */

struct pick_ray {
    double from_mm[3], direction[3];
};

struct pick_hit {
    int module;     /* -1: none */
    int crystal[2]; /* p, q; -1 in a gap between crystal faces */
    double share;   /* length along the ray, as a multiple of `direction` */
    double point_mm[3];
};

/* The nearest module face on the ray whose front is towards the ray's origin. Only such faces are drawn. */
struct pick_hit pick_module(const lr_scanner *scanner, const struct pick_ray *ray);

/* The point where the ray crosses the grid's slice across `axis` at `at_mm`. Returns false if there is no such
 * point. */
bool pick_slice(const lr_grid *grid, const struct pick_ray *ray, int axis, double at_mm, double point_mm[3]);

/* The index along `axis` of the voxel that contains a position. It may lie outside of the grid: below 0, or too large. */
double pick_index(const lr_grid *grid, int axis, double at_mm);

/* The voxel that contains a point. Returns false if there is none. */
bool pick_voxel(const lr_grid *grid, const double point_mm[3], int voxel[3]);
