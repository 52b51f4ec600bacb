// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Exact mode of columns.glsl: within a strip a primary cell is a rectangle and a secondary one lies
// between two lines, so that their overlap integrates in closed form.

// A line over the strip, clamped to -half .. half: its mean, its first moment over the strip's width
// (-1/2 .. 1/2), and its variance. middle: where it is at the strip's middle; rise: from one end to
// the other.
vec3 clamped_line(float middle, float rise, float half_cell)
{
    float steep = abs(rise);
    float inverse = 1.0 / max(steep, 1e-20);
    float above = middle + half_cell, over = middle - half_cell;
    float f = clamp(fma(above, inverse, 0.5), 0.0, 1.0); // share of the width above -half
    float g = clamp(fma(over, inverse, 0.5), 0.0, 1.0);  // and above half
    float ff = f * f, gg = g * g;
    float beyond = max(over - 0.5 * steep, 0.0) + 0.5 * steep * gg; // mean above half
    float mean = max(above - 0.5 * steep, 0.0) + 0.5 * steep * ff - beyond - half_cell;
    float moment = rise * (1.0 / 12.0) * (ff * fma(-2.0, f, 3.0) - gg * fma(-2.0, g, 3.0));
    float variance = steep * steep * (1.0 / 12.0) *
                         (ff * f * fma(-3.0, f, 4.0) - gg * g * fma(-3.0, g, 4.0)) -
                     2.0 * beyond * (half_cell - mean);
    return vec3(mean, moment, max(variance, 0.0));
}

// The same for a line that meets one end of the cell at most.
vec3 gently_clamped_line(float middle, float rise, float half_cell)
{
    float steep = abs(rise);
    float within = half_cell - abs(middle);
    float f = clamp(fma(within, 1.0 / max(steep, 1e-20), 0.5), 0.0, 1.0); // share of it inside
    float ff = f * f;
    float kept = max(within - 0.5 * steep, 0.0) + 0.5 * steep * ff;
    float mean = half_cell - kept;
    return vec3(middle < 0.0 ? -mean : mean, rise * (1.0 / 12.0) * ff * fma(-2.0, f, 3.0),
                rise * rise * (1.0 / 12.0) * ff * f * fma(-3.0, f, 4.0));
}

// Solid angle / 2 pi of what cell q of the primary shows through s of the secondary, whose faces
// begin at `low`: overlap times density at its middle, with the terms of second order.
float axial_weight(Strip strip, Axial a, Axial b, ivec2 qs, vec2 low)
{
    float a0 = low.x, b0 = low.y;
    float half_cell = 0.5 * a.face;
    float middle = a0 + half_cell, b1 = b0 + b.face;
    vec3 upper = vec3(fma(-b0, strip.tau, -middle), 0.0, 0.0);
    vec3 lower = vec3(fma(-b1, strip.tau, -middle), 0.0, 0.0);
    if (strip.dtau == 0.0) {
        upper.x = clamp(upper.x, -half_cell, half_cell);
        lower.x = clamp(lower.x, -half_cell, half_cell);
    } else if (strip.gentle || max(abs(b0), abs(b1)) * abs(strip.dtau) <= a.face) {
        upper = gently_clamped_line(upper.x, -b0 * strip.dtau, half_cell);
        lower = gently_clamped_line(lower.x, -b1 * strip.dtau, half_cell);
    } else {
        upper = clamped_line(upper.x, -b0 * strip.dtau, half_cell);
        lower = clamped_line(lower.x, -b1 * strip.dtau, half_cell);
    }
    float height = max(upper.x - lower.x, 0.0);
    float y = middle + 0.5 * (upper.x + lower.x);
    float yy = y * y;
    float root = inversesqrt(yy + strip.squared);
    float inverse = root * root;
    float curve = fma(2.5 * yy, inverse, -0.5); // 1/6 of the density's second derivative along y
    vec3 sum = upper + lower, less = upper - lower;
    float bend = fma(strip.bend.x, inverse, -strip.bend.y) + 0.25 * height * height * curve +
                 1.5 * curve * sum.z + 2.5 * y * inverse * strip.bend.z * sum.y;
    float bent = height * fma(bend, inverse, 1.0) -
                 inverse * (strip.bend.z * less.y + 1.5 * y * less.z);
    return strip.share * inverse * root * bent;
}
