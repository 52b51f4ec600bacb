// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// How a slice is shared among its voxels (docs/method/listmode.md, "Thin lines", "Tubes of
// response"). Variants: LINE, else TABLE or a Gaussian.
#include "listmode/line.glsl"

// The rectangle in which voxels of a slice may have shares, and what it takes to know them.
struct Kernel {
    vec2 half_width; // of the rectangle, in voxels
    ivec2 width;     // voxels
    vec2 lean;       // components of the line's direction across
};

struct Box {
    ivec2 low; // its lowest voxel
    vec2 off;  // from the crossing to that one's centre, in voxels
};

#ifdef TABLE
layout(std430, binding = LR_BIND_LIST_TABLE) readonly buffer Table {
    float table[];
};
#endif

float step_of(uvec2 step)
{
    return float(int(step.x)) + float(step.y) * (1.0 / 4294967296.0);
}

Kernel kernel_of(Line line)
{
#ifdef LINE
    return Kernel(vec2(1.0), ivec2(2), vec2(0.0));
#else
    vec2 slope = vec2(step_of(line.step.xy), step_of(line.step.zw)) * voxel_mm.yz / voxel_mm.x;
    float along = inversesqrt(1.0 + dot(slope, slope));
    vec2 lean = slope * along;
    vec2 reach = sqrt(tube.x * max(1.0 - lean.yx * lean.yx, 0.0)) / (along * voxel_mm.yz);
    return Kernel(reach, ivec2(2.0 * reach) + 1, lean);
#endif
}

Box box_of(Line line, Kernel kernel, int j)
{
    Box box;
    ivec2 whole;
    vec2 part;
    crossing_of(line, j, 0, whole.x, part.x);
    crossing_of(line, j, 1, whole.y, part.y);
#ifdef LINE
    box.low = whole;
    box.off = -part;
#else
    vec2 lowest = ceil(part - kernel.half_width);
    box.low = whole + ivec2(lowest);
    box.off = lowest - part;
#endif
    return box;
}

// The share of a voxel, before it is divided by the sum over its slice.
float share_of(Kernel kernel, vec2 off)
{
#ifdef LINE
    return max(1.0 - abs(off.x), 0.0) * max(1.0 - abs(off.y), 0.0);
#else
    vec2 off_mm = off * voxel_mm.yz;
    float along = dot(off_mm, kernel.lean);
    float square = dot(off_mm, off_mm) - along * along;
    float fall = clamp((tube.x - square) * tube.y, 0.0, 1.0);
#ifdef TABLE
    float entry = min(sqrt(max(square, 0.0)) * tube.w, unit.z);
    int k = int(entry);
    return fall * mix(table[k], table[k + 1], entry - float(k));
#else
    return fall * exp2(-tube.w * clamp(square, 0.0, tube.z));
#endif
#endif
}

// Whether the shares of a slice are divided by their sum.
#if defined(LINE) || defined(AS_PAPER)
#define NORMALISED 0
#else
#define NORMALISED 1
#endif
