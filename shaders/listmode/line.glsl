// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// A line through slices, and the factors of slices (docs/method/listmode.md, "Factor of a slice"). Variants: TOF;
// AS_PAPER; BINS, if times of flight are in bins.
#include "kernels/times.glsl"
#include "listmode/lines.glsl"
#include "listmode/pass.glsl"

struct Line {
    uvec4 at, step;
    int first, count;
    vec4 factor;
#if defined(TOF) && defined(BINS)
    float half_bin;
#endif
};

Line line_of(uint k)
{
    uint all = uint(size.w);
    uvec4 way = lines[2u * all + k];
    Line line;
    line.at = lines[k];
    line.step = lines[all + k];
    line.first = int(way.x);
    line.count = int(way.y);
    line.factor = uintBitsToFloat(lines[3u * all + k]);
#if defined(TOF) && defined(BINS)
    line.half_bin = uintBitsToFloat(lines[4u * all + k].x);
#endif
    return line;
}

Line no_line()
{
    Line line;
    line.at = line.step = uvec4(0u);
    line.first = line.count = 0;
    line.factor = vec4(0.0);
#if defined(TOF) && defined(BINS)
    line.half_bin = 1.0;
#endif
    return line;
}

#ifdef TOF
// The TOF factor of the line's slice j. The first slice is cut at its lower end, and the last slice at its upper end.
float tof_factor(Line line, int j, int last)
{
    vec4 factor = line.factor;
    float middle = factor.x + float(j) * factor.y;
#if defined(AS_PAPER) && defined(BINS)
    vec2 ends = clamp(middle + vec2(-line.half_bin, line.half_bin), -3.0, 3.0);
    return 1.2533141 / line.half_bin * (normal_from_0(ends.y) - normal_from_0(ends.x));
#elif defined(AS_PAPER)
    return exp(-0.5 * middle * middle);
#else
    float way = j == 0 ? factor.z : j == last ? factor.w : factor.y;
    float cut = last == 0 ? 0.0 : 0.5 * (factor.y - way);
    float centre = j == 0 ? middle + cut : middle - cut, half_width = 0.5 * way;
#ifdef BINS
    return held_of_bin(centre, half_width, line.half_bin);
#else
    float share = half_width < 0.5 ? normal_around(centre, half_width)
                                   : normal_from_0(centre + half_width) - normal_from_0(centre - half_width);
    return share * float(1.0 / LR_TIMES_HELD);
#endif
#endif
}
#endif

// The factor T of the line's slice j, that is of slice first + j of the image.
float slice_factor(Line line, int j)
{
#ifdef TOF
    return tof_factor(line, j, line.count - 1);
#else
    return j == 0 ? line.factor.z : j == line.count - 1 ? line.factor.w : line.factor.y;
#endif
}

// Returns a + b step. a, step: whole voxels, and the fraction in units of 2^-32 voxel.
uvec2 step_along(uvec2 a, uint b, uvec2 step)
{
    uint carry, low, high;
    umulExtended(b, step.y, high, low);
    uint sum = uaddCarry(a.y, low, carry);
    return uvec2(a.x + b * step.x + high + carry, sum);
}

// The crossing of the line's slice j.
uvec4 crossing_at(Line line, int j)
{
    return uvec4(step_along(line.at.xy, uint(j), line.step.xy), step_along(line.at.zw, uint(j), line.step.zw));
}

// Moves the crossing to the next slice. The result has the same bits as crossing_at.
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

// The crossing along u (axis 0) or v (axis 1): whole voxels, and the fraction of a voxel.
void crossing_of(Line line, int j, int axis, out int whole, out float part)
{
    uvec4 at = crossing_at(line, j);
    whole = int(axis == 0 ? at.x : at.z);
    part = part_of(axis == 0 ? at.y : at.w);
}
