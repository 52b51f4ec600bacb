// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// An upper bound of a slice's elements. Needs listmode/kernel.glsl before it.
float largest_of(Line line, Kernel kernel, int j)
{
    Box box = box_of(line, kernel, j);
    float sum = 0.0, most = 0.0;
    for (int v = 0; v < kernel.width.y; v++) {
        Row shares = row_of(kernel, box, v);
        for (int u = 0; u < kernel.width.x; u++) {
            float share = share_of(kernel, shares, u);
            ivec2 at = box.low + ivec2(u, v);
            sum += share;
            if (uint(at.x) < uint(size.y) && uint(at.y) < uint(size.z)) most = max(most, share);
        }
    }
    float factor = slice_factor(line, j) * most;
#if NORMALISED
    return sum > 0.0 ? factor / sum : 0.0;
#else
    return factor;
#endif
}
