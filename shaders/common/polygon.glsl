// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Convex polygons and their cuts by lines (Sutherland and Hodgman 1974). The including file defines
// MAX_CORNERS.
struct Polygon {
    vec2 corners[MAX_CORNERS];
    int count;
};

// The part of the polygon that satisfies line.x + line.y a + line.z b >= 0.
Polygon clip(Polygon polygon, vec3 line)
{
    Polygon kept;
    kept.count = 0;
    vec2 before = polygon.corners[max(polygon.count - 1, 0)];
    float side_before = line.x + dot(line.yz, before);
    for (int k = 0; k < polygon.count; k++) {
        vec2 here = polygon.corners[k];
        float side = line.x + dot(line.yz, here);
        if ((side < 0.0) != (side_before < 0.0) && kept.count < MAX_CORNERS)
            kept.corners[kept.count++] = mix(before, here, side_before / (side_before - side));
        if (side >= 0.0 && kept.count < MAX_CORNERS) kept.corners[kept.count++] = here;
        before = here;
        side_before = side;
    }
    return kept;
}
