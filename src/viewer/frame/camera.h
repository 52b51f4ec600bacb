/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Where a person looks from: around a place, at a distance. Frame and units as everywhere: mm,
 * right-handed, z along the scanner's axis. */
#ifndef LR_VIEWER_CAMERA_H
#define LR_VIEWER_CAMERA_H

#include <stdbool.h>

struct camera {
    double at_mm[3];             /* the place looked at */
    double distance_mm;          /* from it */
    double turn_deg, height_deg; /* where it is seen from: about z from x, and above the xy plane */
    double reach_mm;             /* radius of what there is to see */
};

/* The view of what reaches so far, from the side and above. aspect: the picture's width to height. */
void camera_fit(struct camera *camera, double reach_mm, double aspect);

/* As a mouse does: shares of the picture's height. */
void camera_orbit(struct camera *camera, double right, double down);
void camera_pan(struct camera *camera, double right, double down);
void camera_zoom(struct camera *camera, double steps); /* positive: nearer */

/* Seen along an axis: 0 x, 1 y, 2 z. */
void camera_along(struct camera *camera, int axis);

struct camera_view {
    float clip_of_world[16]; /* column after column */
    float eye_mm[3];
    float right[3], up[3], forward[3];
    double tangent; /* half the picture's height at distance 1 */
    double aspect;
};
void camera_view(const struct camera *camera, double aspect, struct camera_view *view);

/* The line of sight through a place of the picture, 0 .. 1 from its left and its top. */
void camera_ray(const struct camera_view *view, const double place[2], double direction[3]);

/* Where a place is in the picture, 0 .. 1 from the left and top; false: behind the eye. */
bool camera_project(const struct camera_view *view, const double point_mm[3], double place[2]);

#endif
