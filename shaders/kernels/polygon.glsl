// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Convex polygons in a plane: their cuts by lines (Sutherland and Hodgman 1974), and the solid angles in which a point
// sees them. The including file defines MAX_CORNERS.
#ifndef LR_KERNELS_POLYGON
#define LR_KERNELS_POLYGON
#include "kernels/numbers.glsl"

#ifndef GL_core_profile
struct vec2 {
    float x, y;
};
#endif

struct convex_polygon {
    int count;
    vec2 corners[MAX_CORNERS];
};

// A rectangle whose centre is the origin.
LR_KERNEL convex_polygon rectangle(float half_x, float half_y)
{
    convex_polygon polygon;
    polygon.count = 4;
    for (int k = 0; k < 4; k++) {
        polygon.corners[k].x = k == 0 || k == 3 ? -half_x : half_x;
        polygon.corners[k].y = k < 2 ? -half_y : half_y;
    }
    return polygon;
}

// The part of the polygon in which a + b x + c y >= 0.
LR_KERNEL convex_polygon clip(LR_IN(convex_polygon) polygon, float a, float b, float c)
{
    convex_polygon kept;
    kept.count = 0;
    vec2 before = polygon.corners[polygon.count > 0 ? polygon.count - 1 : 0];
    float side_before = a + b * before.x + c * before.y;
    for (int k = 0; k < polygon.count; k++) {
        vec2 here = polygon.corners[k];
        float side = a + b * here.x + c * here.y;
        if ((side < 0.0f) != (side_before < 0.0f) && kept.count < MAX_CORNERS) {
            float t = quotient_of(side_before, side_before - side);
            kept.corners[kept.count].x = before.x + t * (here.x - before.x);
            kept.corners[kept.count].y = before.y + t * (here.y - before.y);
            kept.count++;
        }
        if (side >= 0.0f && kept.count < MAX_CORNERS) {
            kept.corners[kept.count] = here;
            kept.count++;
        }
        before = here;
        side_before = side;
    }
    return kept;
}

// The area of a polygon. If the area is positive, the struct also has the centroid, and the second moments about the
// centroid.
struct polygon_moments {
    float area, x, y, xx, yy, xy;
};

LR_KERNEL polygon_moments moments_of(LR_IN(convex_polygon) polygon)
{
    float area = 0.0f, x = 0.0f, y = 0.0f, xx = 0.0f, yy = 0.0f, xy = 0.0f;
    vec2 first = polygon.corners[0];
    for (int k = 1; k + 1 < polygon.count; k++) {
        float px = polygon.corners[k].x - first.x, py = polygon.corners[k].y - first.y;
        float qx = polygon.corners[k + 1].x - first.x, qy = polygon.corners[k + 1].y - first.y;
        float twice = px * qy - py * qx;
        area += 0.5f * twice;
        x += twice * (px + qx) * (1.0f / 6.0f);
        y += twice * (py + qy) * (1.0f / 6.0f);
        xx += twice * (px * px + px * qx + qx * qx) * (1.0f / 12.0f);
        yy += twice * (py * py + py * qy + qy * qy) * (1.0f / 12.0f);
        xy += twice * (2.0f * (px * py + qx * qy) + px * qy + qx * py) * (1.0f / 24.0f);
    }
    float mean_x = quotient_of(x, area), mean_y = quotient_of(y, area);
    polygon_moments moments = {area,           first.x + mean_x, first.y + mean_y, xx - mean_x * x, yy - mean_y * y,
                               xy - mean_x * y};
    return moments;
}

// The solid angle of a polygon: its area, times the density height / distance^3 at its centroid, with the terms of
// second order. x, y: vector from the foot of the point to the origin of the corners' coordinates.
LR_KERNEL float polygon_angle(polygon_moments of, float x, float y, float height)
{
    float at_x = x + of.x, at_y = y + of.y;
    float root = per_root(at_x * at_x + at_y * at_y + height * height), inverse = root * root;
    float bend = 7.5f * inverse * (at_x * at_x * of.xx + 2.0f * at_x * at_y * of.xy + at_y * at_y * of.yy) -
                 1.5f * (of.xx + of.yy);
    return height * inverse * root * fmaxf(of.area + inverse * bend, 0.0f);
}
#endif
