/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Convex polygons in the plane of a primary module, and polygons in homogeneous coordinates that are projected into
 * this plane. The clipping algorithm is from Sutherland and Hodgman (CACM 17:32, 1974). */
#pragma once

#include <stdbool.h>

/* Largest number of vertices of a polygon. */
#define LR_CPU_POLYGON_MAX 32

/* The largest number of vertices before a cut. A cut adds at most one vertex to a convex polygon. If rounding has made
 * the polygon jagged, a cut adds at most half as many vertices as the polygon has. */
#define LR_CPU_POLYGON_MAX_CUT 20

/* A convex polygon with either orientation. Vertices are relative to the foot of the perpendicular from the eye to the
 * plane. */
struct lr_cpu_polygon {
    int count;
    double at[LR_CPU_POLYGON_MAX][2];
};

/* A point of the plane in homogeneous coordinates (x w, y w, w): w > 0 in front of the eye, w <= 0 behind it. */
struct lr_cpu_projected {
    double x, y, w;
};

/* The rectangle low[0] <= x <= high[0], low[1] <= y <= high[1]. */
struct lr_cpu_rectangle {
    double low[2], high[2];
};

/* Clips a projected convex polygon of 3 or 4 corners to a rectangle. The result has count = 0 if they do not overlap.
 * Corners behind the eye need no special treatment: clipping in homogeneous coordinates excludes them. */
void lr_cpu_polygon_clip_projected(const struct lr_cpu_projected *corners, int num_corners,
                                   const struct lr_cpu_rectangle *rectangle, struct lr_cpu_polygon *out);

/* Clips a polygon to the half plane plane[0] x + plane[1] y + plane[2] >= 0. `in` and `out` must be different polygons,
 * and in->count <= LR_CPU_POLYGON_MAX_CUT. */
void lr_cpu_polygon_clip(const struct lr_cpu_polygon *in, const double plane[3], struct lr_cpu_polygon *out);

/* Sets `plane` for lr_cpu_polygon_clip to the half plane on the left of edge `index`. */
void lr_cpu_polygon_edge(const struct lr_cpu_polygon *polygon, int index, double plane[3]);

/* Signed area, positive if the vertices run counter-clockwise. */
double lr_cpu_polygon_area(const struct lr_cpu_polygon *polygon);

/* Makes one of the two halves into which a diagonal divides a polygon of at least 4 vertices. */
void lr_cpu_polygon_half(const struct lr_cpu_polygon *polygon, int half, struct lr_cpu_polygon *out);

/* The smallest rectangle around a polygon; empty (low > high) if the polygon has no vertices. */
struct lr_cpu_rectangle lr_cpu_polygon_box(const struct lr_cpu_polygon *polygon);

void lr_cpu_polygon_reverse(struct lr_cpu_polygon *polygon);

/* Computes the centre of gravity. The area must not be 0. */
void lr_cpu_polygon_centroid(const struct lr_cpu_polygon *polygon, double centroid[2]);

/* Returns the solid angle of a polygon seen from `height` above the origin, sr, positive. With exact vertices the
 * relative error is about 1e-14, however small the angle. Source: van Oosterom and Strackee, IEEE Trans. Biomed. Eng.
 * 30:125 (1983). */
double lr_cpu_polygon_solid_angle(const struct lr_cpu_polygon *polygon, double height);
