// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Exact mode of columns.glsl: a primary cell is a rectangle within a strip, and a secondary cell
// lies between two lines. The integral over their overlap has a closed form.

float with_sign_of(float size, float other)
{
    return uintBitsToFloat(floatBitsToUint(size) ^ (floatBitsToUint(other) & 0x80000000u));
}

// A line over the strip, clamped to -half_cell .. half_cell. The line must cross at most one of these bounds. Result:
// the clamped line's mean, 12 times its first moment over the strip's width (-1/2 .. 1/2), and 12 times its variance.
// middle: position of the line in the strip's middle; rise: the line's change from one end to the other.
vec3 clamped_line(float middle, float rise, float half_cell)
{
    float half_steep = 0.5 * abs(rise);
    float within = half_cell + half_steep - abs(middle);               // distance from the line's inner end to the
                                                                       // bound
    float f = clamp(within * (1.0 / max(abs(rise), 1e-20)), 0.0, 1.0); // fraction of the line inside
    float mean = fma(-f, fma(-half_steep, f, within), half_cell);
    float part = rise * f * f;
    return vec3(with_sign_of(mean, middle), part * fma(-2.0, f, 3.0), part * (rise * f) * fma(-3.0, f, 4.0));
}

#ifdef NEAR // for scanners with crystals that may look large from a point
#include "correspondence/triangle.glsl"

// The solid angle of one of the four triangles whose sum is the area below a line within a cell. Triangles 0 and 1 are
// the trapezoid below the part of the line that is in the cell. Triangles 2 and 3 are the rectangle below the part of
// the line that is above the cell. corner: the cell's corner at the strip's beginning.
float angle_below(vec3 corner, vec2 size, vec2 line, int which)
{
    float middle = line.x, steep = abs(line.y), above = middle + 0.5 * size.y;
    float inverse = 1.0 / max(steep, 1e-20);
    float f = clamp(fma(above, inverse, 0.5), 0.0, 1.0);
    float g = clamp(fma(above - size.y, inverse, 0.5), 0.0, 1.0);
    vec2 heights = clamp(vec2(above - 0.5 * steep, above + 0.5 * steep), 0.0, size.y);
    bool rises = line.y > 0.0, whole = which >= 2;
    heights = whole ? vec2(size.y) : rises ? heights : heights.yx;
    float width = (whole ? g : f - g) * size.x;
    float from = rises ? (whole ? 1.0 - g : 1.0 - f) : (whole ? 0.0 : g);
    vec3 a = corner + vec3(from * size.x, 0.0, 0.0), c = a + vec3(width, heights.y, 0.0);
    bool second = (which & 1) != 0;
    vec3 b = second ? c : a + vec3(width, 0.0, 0.0), d = second ? a + vec3(0.0, heights.x, 0.0) : c;
    return triangle_angle(a, b, d, width * (second ? heights.x : heights.y));
}

// The weight of an overlap that looks large from the point, in closed form. The loop's bound is hidden from compilers,
// because unrolling the loop over eight triangles takes them seconds.
float near_weight(Strip strip, float a0, float face, vec2 middles, vec2 rises)
{
    float height = strip.share * 6.283185307179586 / strip.width;
    float x = strip.bend.z / (3.0 * strip.width);
    vec3 corner = vec3(x - 0.5 * strip.width, a0, height);
    vec2 sums = vec2(0.0); // both sums have the same bits if neither line is in the cell
    for (int k = 0; k < min(num_points.z, 1) * 8; k++) {
        vec2 line = k >= 4 ? vec2(middles.y, rises.y) : vec2(middles.x, rises.x);
        float angle = angle_below(corner, vec2(strip.width, face), line, k & 3);
        sums += k >= 4 ? vec2(0.0, angle) : vec2(angle, 0.0);
    }
    return max(sums.x - sums.y, 0.0) / 6.283185307179586;
}

// The expansion is used if the square of an overlap's diameter, as seen from the point, is at most this number, in
// radian^2. The error of the expansion grows with the square of this number.
const float NEAR_SIZE = 0.002;

#endif

// The overlap between parallel modules is a rectangle.
float parallel_weight(Strip strip, float middle, float half_cell, vec2 ends)
{
    vec2 at = clamp(ends, -half_cell, half_cell);
    float height = at.x - at.y;
    height = height > rounding(middle, half_cell) ? height : 0.0;
    float y = middle + 0.5 * (at.x + at.y);
    float yy = y * y;
    float root = inversesqrt(yy + strip.squared);
    float inverse = root * root;
    float bend = fma(strip.bend.x, inverse, -strip.bend.y) + height * height * fma(0.625 * yy, inverse, -0.125);
    return strip.share * inverse * root * height * fma(bend, inverse, 1.0);
}

// Solid angle / 2 pi of the part of the primary's cell q that is visible through cell s of the secondary: the area of
// the overlap times the density at its middle, with second-order terms. at: middles of the two faces. If the sign of
// `at` is changed, the result has the same bits.
float axial_weight(Strip strip, Axial a, Axial b, ivec2 qs, vec2 at)
{
    float half_cell = 0.5 * a.face, middle = at.x;
    float b0 = at.y - 0.5 * b.face, b1 = at.y + 0.5 * b.face;
    vec2 middles = vec2(fma(-b0, strip.tau, -middle), fma(-b1, strip.tau, -middle));
#ifndef NEAR
    if (strip.dtau == 0.0) return parallel_weight(strip, middle, half_cell, middles);
#endif
    vec2 rises = -vec2(b0, b1) * strip.dtau;
    vec3 upper = clamped_line(middles.x, rises.x, half_cell);
    vec3 lower = clamped_line(middles.y, rises.y, half_cell);
    float height = upper.x - lower.x;
    height = height > rounding(middle, half_cell) ? height : 0.0;
    float y = middle + 0.5 * (upper.x + lower.x);
    float yy = y * y;
    float root = inversesqrt(yy + strip.squared);
    float inverse = root * root;
#ifdef NEAR
    if (height > 0.0 && fma(strip.width, strip.width, height * height) * inverse > NEAR_SIZE)
        return near_weight(strip, middle - half_cell, a.face, middles, rises);
#endif
    float curve = fma(2.5 * yy, inverse, -0.5); // 1/6 of the density's second derivative along y
    vec3 sum = upper + lower, less = upper - lower;
    float part = inverse * (1.0 / 12.0), slant = part * strip.bend.z;
    float bend = fma(strip.bend.x, inverse, -strip.bend.y) + curve * fma(0.25 * height, height, 0.125 * sum.z) +
                 2.5 * y * slant * sum.y;
    float bent = fma(height * inverse, bend, height) - fma(slant, less.y, 1.5 * y * part * less.z);
    bent = height > 0.0 ? max(bent, 0.0) : 0.0; // without max(), the result could be negative near a corner
    return strip.share * inverse * root * bent;
}

// The weight for a strip that can have several pieces.
float whole_weight(Strip strip, Axial a, Axial b, vec2 at)
{
    float sum = 0.0;
    for (int k = 0; k < strip.pieces; k++) sum += axial_weight(strip_piece(strip, k), a, b, ivec2(0), at);
    return sum;
}
