// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The solid angle of a triangle at any distance (van Oosterom and Strackee, The Solid Angle of a Plane Triangle, 1983).

// atan(y, x) for y >= 0, to a float's accuracy. GLSL's own atan can be far less accurate.
float arc_of(float y, float x)
{
    bool steep = y > abs(x);
    float t = steep ? x / y : y / x;            // -1 .. 1
    float h = t / (1.0 + sqrt(fma(t, t, 1.0))); // tangent of half the angle
    float q = h / (1.0 + sqrt(fma(h, h, 1.0))); // tangent of a quarter of the angle, 0.2 at most
    float z = q * q;
    float series = fma(z, fma(z, fma(z, fma(z, 1.0 / 9.0, -1.0 / 7.0), 1.0 / 5.0), -1.0 / 3.0), 1.0);
    float angle = 4.0 * q * series;
    return steep ? 1.5707963267948966 - angle : x < 0.0 ? angle + 3.141592653589793 : angle;
}

// Solid angle of a triangle in the plane z = height. doubled_area: twice the triangle's area, which is not negative.
float triangle_angle(vec3 a, vec3 b, vec3 c, float doubled_area)
{
    vec3 way = vec3(length(a), length(b), length(c));
    float across = way.x * way.y * way.z + dot(a, b) * way.z + dot(b, c) * way.x + dot(c, a) * way.y;
    return 2.0 * arc_of(a.z * doubled_area, across);
}
