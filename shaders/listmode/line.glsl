// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// A line on its way through slices, and the factors of slices (docs/method/listmode.md, "Factor of a
// slice"). Variants: TOF, AS_PAPER.
#include "listmode/lines.glsl"
#include "listmode/pass.glsl"

struct Line {
    uvec4 at, step;
    int first, count;
    vec4 factor;
};

#define HELD 0.99730020393673981

Line line_of(uint k)
{
    uint all = uint(size.w);
    uvec4 way = lines[2u * all + k];
    return Line(lines[k], lines[all + k], int(way.x), int(way.y),
                uintBitsToFloat(lines[3u * all + k]));
}

// The integral of the normal distribution from 0 to z, |z| <= 3, to 1e-8: z times a polynomial of
// z^2, interpolated at the roots of a Chebyshev polynomial.
float normal_from_0(float z)
{
    float t = z * z * (1.0 / 4.5) - 1.0;
    float sum = -1.24917115e-05;
    sum = sum * t + 5.83428409e-05;
    sum = sum * t - 0.000217263485;
    sum = sum * t + 0.000812567188;
    sum = sum * t - 0.00272948085;
    sum = sum * t + 0.00802339986;
    sum = sum * t - 0.0205710717;
    sum = sum * t + 0.0459720045;
    sum = sum * t - 0.0928324834;
    return z * (sum * t + 0.227713168);
}

// T of slice first + j.
float slice_factor(Line line, int j)
{
#ifdef TOF
#ifdef AS_PAPER
    float z = line.factor.x + (float(j) + 0.5) * line.factor.y;
    return exp(-0.5 * z * z);
#else
    float low = clamp(line.factor.x + float(j) * line.factor.y, line.factor.z, line.factor.w);
    float high = clamp(line.factor.x + float(j + 1) * line.factor.y, line.factor.z, line.factor.w);
    return (normal_from_0(high) - normal_from_0(low)) * float(1.0 / HELD);
#endif
#else
    return j == 0 ? line.factor.x : j == line.count - 1 ? line.factor.z : line.factor.y;
#endif
}

// Where slice first + j is crossed along u (axis 0) or v: whole voxels, and what of one is left.
void crossing_of(Line line, int j, int axis, out int whole, out float part)
{
    uvec2 at = axis == 0 ? line.at.xy : line.at.zw, step = axis == 0 ? line.step.xy : line.step.zw;
    uint carry, low, high;
    umulExtended(uint(j), step.y, high, low);
    uint sum = uaddCarry(at.y, low, carry);
    whole = int(at.x + uint(j) * step.x + high + carry);
    part = float(sum) * (1.0 / 4294967296.0);
}
