// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Exact mode of columns.glsl: within a strip a primary cell is a rectangle and a secondary one lies
// between two lines, so that their overlap integrates in closed form.

// A line over the strip, clamped to -half .. half: its mean, and its first moment over the strip's
// width (-1/2 .. 1/2). middle: where it is at the strip's middle; rise: from one end to the other.
vec2 clamped_line(float middle, float rise, float half_cell)
{
    float steep = abs(rise);
    float inverse = 1.0 / max(steep, 1e-20);
    float above = middle + half_cell, over = middle - half_cell;
    float f = clamp(fma(above, inverse, 0.5), 0.0, 1.0); // share of the width above -half
    float g = clamp(fma(over, inverse, 0.5), 0.0, 1.0);  // and above half
    float ff = f * f, gg = g * g;
    float mean = max(above - 0.5 * steep, 0.0) - max(over - 0.5 * steep, 0.0) +
                 0.5 * steep * (ff - gg) - half_cell;
    float moment = rise * (1.0 / 12.0) * (ff * fma(-2.0, f, 3.0) - gg * fma(-2.0, g, 3.0));
    return vec2(mean, moment);
}

// The same for a line that meets one end of the cell at most.
vec2 gently_clamped_line(float middle, float rise, float half_cell)
{
    float steep = abs(rise);
    float within = half_cell - abs(middle);
    float f = clamp(fma(within, 1.0 / max(steep, 1e-20), 0.5), 0.0, 1.0); // share of it inside
    float ff = f * f;
    float kept = max(within - 0.5 * steep, 0.0) + 0.5 * steep * ff;
    float mean = half_cell - kept;
    return vec2(middle < 0.0 ? -mean : mean, rise * (1.0 / 12.0) * ff * fma(-2.0, f, 3.0));
}

// Solid angle / 2 pi of what cell q of the primary shows through s of the secondary, whose faces
// begin at `low`: overlap times density at its middle, with the terms of second order.
float axial_weight(Strip strip, Axial a, Axial b, ivec2 qs, vec2 low)
{
    float a0 = low.x, b0 = low.y;
    float half_cell = 0.5 * a.face;
    float middle = a0 + half_cell, b1 = b0 + b.face;
    vec2 upper = vec2(fma(-b0, strip.tau, -middle), 0.0);
    vec2 lower = vec2(fma(-b1, strip.tau, -middle), 0.0);
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
    float bend = fma(strip.bend.x, inverse, -strip.bend.y) +
                 height * height * fma(0.625 * yy, inverse, -0.125);
    float bent = height * fma(bend, inverse, 1.0) - strip.bend.z * inverse * (upper.y - lower.y);
    return strip.share * inverse * root * bent;
}
