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

// The integral over places within half_width <= 0.5 of a centre: the Gaussian's series around it, whose
// terms are Hermite's polynomials; good to 3e-8 of itself, which a difference of two integrals is not.
float normal_around(float centre, float half_width)
{
    float y = centre * centre, q = half_width * half_width;
    float of_8 = (((y - 28.0) * y + 210.0) * y - 420.0) * y + 105.0;
    float of_6 = ((y - 15.0) * y + 45.0) * y - 15.0;
    float of_4 = (y - 6.0) * y + 3.0;
    float sum = of_6 * (1.0 / 5040.0) + q * of_8 * (1.0 / 362880.0);
    sum = 1.0 + q * ((y - 1.0) * (1.0 / 6.0) + q * (of_4 * (1.0 / 120.0) + q * sum));
    return 0.79788456 * half_width * exp(-0.5 * y) * sum;
}

#ifdef TOF
// The first slice is cut below, the last one above.
float tof_factor(vec4 factor, int j, int last)
{
    float middle = factor.x + float(j) * factor.y;
#ifdef AS_PAPER
    return exp(-0.5 * middle * middle);
#else
    float way = j == 0 ? factor.z : j == last ? factor.w : factor.y;
    float cut = last == 0 ? 0.0 : 0.5 * (factor.y - way);
    float centre = j == 0 ? middle + cut : middle - cut, half_width = 0.5 * way;
    float share = half_width < 0.5
                      ? normal_around(centre, half_width)
                      : normal_from_0(centre + half_width) - normal_from_0(centre - half_width);
    return share * float(1.0 / HELD);
#endif
}
#endif

// T of slice first + j.
float slice_factor(Line line, int j)
{
#ifdef TOF
    return tof_factor(line.factor, j, line.count - 1);
#else
    return j == 0 ? line.factor.z : j == line.count - 1 ? line.factor.w : line.factor.y;
#endif
}

// a + b times step, in whole voxels and 2^-32ths.
uvec2 step_along(uvec2 a, uint b, uvec2 step)
{
    uint carry, low, high;
    umulExtended(b, step.y, high, low);
    uint sum = uaddCarry(a.y, low, carry);
    return uvec2(a.x + b * step.x + high + carry, sum);
}

// Where slice first + j is crossed.
uvec4 crossing_at(Line line, int j)
{
    return uvec4(step_along(line.at.xy, uint(j), line.step.xy),
                 step_along(line.at.zw, uint(j), line.step.zw));
}

// From there to the next slice: the same bits.
void step_on(inout uvec4 at, uvec4 step)
{
    uvec2 carry;
    at.yw = uaddCarry(at.yw, step.yw, carry);
    at.xz += step.xz + carry;
}

float part_of(uint low)
{
    return float(low) * (1.0 / 4294967296.0);
}

// Along u (axis 0) or v: whole voxels, and what of one is left.
void crossing_of(Line line, int j, int axis, out int whole, out float part)
{
    uvec4 at = crossing_at(line, j);
    whole = int(axis == 0 ? at.x : at.z);
    part = part_of(axis == 0 ? at.y : at.w);
}
