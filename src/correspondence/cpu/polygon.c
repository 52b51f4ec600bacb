/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "correspondence/cpu/polygon.h"

#include <math.h>

/* The room for a quadrilateral that is clipped by four half spaces. A convex result has at most 8 corners. If rounding
 * makes polygons jagged, the four cuts leave at most 6, 9, 13 and 19 corners. */
#define MAX_PROJECTED 20

void lr_cpu_polygon_clip_projected(const struct lr_cpu_projected *corners, int num_corners,
                                   const struct lr_cpu_rectangle *rectangle, struct lr_cpu_polygon *out)
{
    struct lr_cpu_projected buffers[2][MAX_PROJECTED];
    const struct lr_cpu_projected *points = corners;
    int count = num_corners;
    out->count = 0;
    for (int side = 0; side < 4; side++) {
        double distances[MAX_PROJECTED];
        int num_inside = 0, num_outside = 0;
        for (int k = 0; k < count; k++) {
            /* The value is the signed distance from the side of the rectangle, multiplied by w. */
            const int axis = side / 2;
            const double at = axis == 0 ? points[k].x : points[k].y, w = points[k].w;
            distances[k] = side % 2 == 0 ? at - rectangle->low[axis] * w : rectangle->high[axis] * w - at;
            num_inside += distances[k] > 0;
            num_outside += distances[k] < 0;
        }
        if (num_inside == 0) return;
        if (num_outside == 0) continue;
        struct lr_cpu_projected *cut = points == buffers[0] ? buffers[1] : buffers[0];
        int num_cut = 0;
        for (int k = 0; k < count; k++) {
            const struct lr_cpu_projected p = points[k], q = points[k + 1 < count ? k + 1 : 0];
            const double here = distances[k], there = distances[k + 1 < count ? k + 1 : 0];
            if (here >= 0) cut[num_cut++] = p;
            if ((here > 0 && there < 0) || (here < 0 && there > 0)) {
                const double t = here / (here - there);
                cut[num_cut++] =
                    (struct lr_cpu_projected){p.x + t * (q.x - p.x), p.y + t * (q.y - p.y), p.w + t * (q.w - p.w)};
            }
        }
        points = cut;
        count = num_cut;
    }
    for (int k = 0; k < count; k++) {
        out->at[k][0] = points[k].x / points[k].w;
        out->at[k][1] = points[k].y / points[k].w;
    }
    out->count = count;
}

void lr_cpu_polygon_clip(const struct lr_cpu_polygon *in, const double plane[3], struct lr_cpu_polygon *out)
{
    out->count = 0;
    for (int k = 0; k < in->count; k++) {
        const double *p = in->at[k], *q = in->at[k + 1 < in->count ? k + 1 : 0];
        const double here = plane[0] * p[0] + plane[1] * p[1] + plane[2];
        const double there = plane[0] * q[0] + plane[1] * q[1] + plane[2];
        if (here >= 0) {
            out->at[out->count][0] = p[0];
            out->at[out->count++][1] = p[1];
        }
        if ((here > 0 && there < 0) || (here < 0 && there > 0)) {
            const double t = here / (here - there);
            out->at[out->count][0] = p[0] + t * (q[0] - p[0]);
            out->at[out->count++][1] = p[1] + t * (q[1] - p[1]);
        }
    }
    if (out->count < 3) out->count = 0;
}

void lr_cpu_polygon_edge(const struct lr_cpu_polygon *polygon, int index, double plane[3])
{
    const double *p = polygon->at[index];
    const double *q = polygon->at[index + 1 < polygon->count ? index + 1 : 0];
    plane[0] = p[1] - q[1];
    plane[1] = q[0] - p[0];
    plane[2] = -(plane[0] * p[0] + plane[1] * p[1]);
}

/* Returns twice the signed area of the triangle with vertices 0, k and k + 1. */
static double fan_cross(const struct lr_cpu_polygon *polygon, int k)
{
    const double *a = polygon->at[0], *b = polygon->at[k], *c = polygon->at[k + 1];
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

double lr_cpu_polygon_area(const struct lr_cpu_polygon *polygon)
{
    double twice = 0;
    for (int k = 1; k + 1 < polygon->count; k++) twice += fan_cross(polygon, k);
    return 0.5 * twice;
}

void lr_cpu_polygon_half(const struct lr_cpu_polygon *polygon, int half, struct lr_cpu_polygon *out)
{
    const int middle = polygon->count / 2;
    const int begin = half == 0 ? 0 : middle, end = half == 0 ? middle : polygon->count;
    out->count = 0;
    for (int k = begin; k <= end; k++) {
        out->at[out->count][0] = polygon->at[k % polygon->count][0];
        out->at[out->count++][1] = polygon->at[k % polygon->count][1];
    }
}

struct lr_cpu_rectangle lr_cpu_polygon_box(const struct lr_cpu_polygon *polygon)
{
    struct lr_cpu_rectangle box = {{INFINITY, INFINITY}, {-INFINITY, -INFINITY}};
    for (int k = 0; k < polygon->count; k++) {
        for (int axis = 0; axis < 2; axis++) {
            box.low[axis] = fmin(box.low[axis], polygon->at[k][axis]);
            box.high[axis] = fmax(box.high[axis], polygon->at[k][axis]);
        }
    }
    return box;
}

void lr_cpu_polygon_reverse(struct lr_cpu_polygon *polygon)
{
    for (int k = 0, m = polygon->count - 1; k < m; k++, m--) {
        for (int axis = 0; axis < 2; axis++) {
            const double swapped = polygon->at[k][axis];
            polygon->at[k][axis] = polygon->at[m][axis];
            polygon->at[m][axis] = swapped;
        }
    }
}

void lr_cpu_polygon_centroid(const struct lr_cpu_polygon *polygon, double centroid[2])
{
    const double *first = polygon->at[0];
    double sum = 0, x = 0, y = 0;
    for (int k = 1; k + 1 < polygon->count; k++) {
        const double *b = polygon->at[k], *c = polygon->at[k + 1];
        const double weight = fan_cross(polygon, k);
        sum += weight;
        x += weight * (b[0] + c[0] - 2 * first[0]);
        y += weight * (b[1] + c[1] - 2 * first[1]);
    }
    centroid[0] = first[0] + x / (3 * sum);
    centroid[1] = first[1] + y / (3 * sum);
}

/* The triple product a . (b x c) of corners in a plane is the plane's height times a determinant of differences. This
 * form is accurate even if the unit vectors nearly coincide. The half angles of the triangles are summed by multiplying
 * complex numbers. The polygon then needs only one arc tangent. */
double lr_cpu_polygon_solid_angle(const struct lr_cpu_polygon *polygon, double height)
{
    if (polygon->count < 3) return 0;
    const double h2 = height * height;
    const double *a = polygon->at[0], *b = polygon->at[1];
    const double la = sqrt(a[0] * a[0] + a[1] * a[1] + h2);
    double lb = sqrt(b[0] * b[0] + b[1] * b[1] + h2);
    double ab = a[0] * b[0] + a[1] * b[1] + h2;
    double re = 1, im = 0;
    for (int k = 1; k + 1 < polygon->count; k++) {
        const double *c = polygon->at[k + 1];
        const double lc = sqrt(c[0] * c[0] + c[1] * c[1] + h2);
        const double ac = a[0] * c[0] + a[1] * c[1] + h2;
        const double bc = b[0] * c[0] + b[1] * c[1] + h2;
        const double scale = 1 / (la * lb * lc);
        const double s = height * fan_cross(polygon, k) * scale;
        const double t = 1 + (ab * lc + ac * lb + bc * la) * scale;
        const double next_re = re * t - im * s;
        im = re * s + im * t;
        re = next_re;
        b = c;
        lb = lc;
        ab = ac;
    }
    return 2 * atan2(fabs(im), re);
}
