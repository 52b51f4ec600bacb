// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sampled mode of columns.glsl: a strip is one line across, and RAYS lines along the axis go through
// each of its crystals.

// Sum over the lines through cell q of the primary that meet the face of cell s of the secondary.
float axial_weight(Strip strip, Axial a, Axial b, ivec2 qs)
{
    float sum = 0.0;
    float first = cell_middle(a, qs.x) - 0.5 * float(RAYS - 1) * a.face / float(RAYS);
    for (int k = 0; k < RAYS; k++) {
        precise float y = first + float(k) * a.face / float(RAYS);
        precise float place = (-y / strip.tau - b.start) / b.pitch;
        int met = min(int(floor(place)), b.count - 1);
        if (met == qs.y && abs(place - float(met) - 0.5) * b.pitch <= 0.5 * b.face) {
            float inverse = 1.0 / fma(y, y, strip.squared);
            sum += inverse * sqrt(inverse);
        }
    }
    return sum * strip.share * a.face / float(RAYS);
}

ivec2 secondary_cells(Strip strip, Axial a, Axial b, int q)
{
    float low = cell_middle(a, q) - 0.5 * a.face, high = low + a.face;
    return cells_between(b, -high / strip.tau, -low / strip.tau);
}
