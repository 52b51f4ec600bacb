// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sampled mode of columns.glsl: a strip is one transaxial line, and each of its crystals has RAYS
// lines along the axis.

// The sum over the lines through cell q of the primary that hit the face of cell s of the secondary. The result depends
// only on the numbers of the cells, so that a line is on the same side of an edge in every pass.
float axial_weight(Strip strip, Axial a, Axial b, ivec2 qs, vec2 at)
{
    float sum = 0.0;
    float spacing = a.face / float(RAYS);
    float scale = 1.0 / b.pitch, inverse_tau = 1.0 / strip.tau;
    precise float first = cell_middle(a, qs.x) - 0.5 * float(RAYS - 1) * spacing;
    for (int k = 0; k < RAYS; k++) {
        precise float y = first + float(k) * spacing;
        precise float place = (-y * inverse_tau - b.start) * scale - float(qs.y);
        if (place >= 0.0 && place < 1.0 && abs(place - 0.5) * b.pitch <= 0.5 * b.face) {
            float root = inversesqrt(y * y + strip.squared);
            sum += root * root * root;
        }
    }
    return sum * strip.share * spacing;
}
