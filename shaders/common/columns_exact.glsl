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

// Solid angle / 2 pi of what cell q of the primary shows through cell s of the secondary: overlap
// times density at its middle, with the terms of second order.
float axial_weight(Strip strip, Axial a, Axial b, ivec2 qs)
{
    float half_cell = 0.5 * a.face;
    float middle = cell_middle(a, qs.x);
    float cell = cell_middle(b, qs.y);
    float b0 = cell - 0.5 * b.face, b1 = cell + 0.5 * b.face;
    vec2 upper = vec2(-b0 * strip.tau - middle, 0.0), lower = vec2(-b1 * strip.tau - middle, 0.0);
    if (strip.dtau == 0.0) {
        upper.x = clamp(upper.x, -half_cell, half_cell);
        lower.x = clamp(lower.x, -half_cell, half_cell);
    } else {
        upper = clamped_line(upper.x, -b0 * strip.dtau, half_cell);
        lower = clamped_line(lower.x, -b1 * strip.dtau, half_cell);
    }
    float height = upper.x - lower.x;
    if (height <= 0.0) {
        return 0.0;
    }
    float y = middle + 0.5 * (upper.x + lower.x);
    float inverse = 1.0 / fma(y, y, strip.squared);
    float bend_u = fma(15.0 * strip.slant * strip.slant, inverse, -3.0) * strip.width * strip.width;
    float bend_v = fma(15.0 * y * y, inverse, -3.0) * height * height;
    float bent = height * fma((bend_u + bend_v) * (1.0 / 24.0), inverse, 1.0) -
                 3.0 * strip.slant * inverse * strip.width * (upper.y - lower.y);
    return strip.share * inverse * sqrt(inverse) * bent;
}

// Cells of the secondary that cell q of the primary may be seen through.
ivec2 secondary_cells(Strip strip, Axial a, Axial b, int q)
{
    float low = cell_middle(a, q) - 0.5 * a.face, high = low + a.face;
    float bend = 0.5 * abs(strip.dtau);
    float near = 1.0 / (strip.tau - bend), far = 1.0 / (strip.tau + bend);
    return cells_between(b, -high * (high > 0.0 ? near : far), -low * (low > 0.0 ? far : near));
}
