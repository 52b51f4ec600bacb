// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The shares of a slice's voxels (docs/method/listmode.md, "Thin lines", "Tubes of response"). Variants: LINE for a
// thin line; TABLE for a tube with a table; otherwise, a tube with a Gaussian.
#include "listmode/line.glsl"

// The rectangle of a slice's voxels that may have shares, and the parameters of the shares.
struct Kernel {
    vec2 half_width; // half of the rectangle, in voxels
    ivec2 width;     // edges of the rectangle, in voxels
    vec3 square;     // tube.w times the squared distance of a voxel from the line is (x u + y v)^2 + z v^2, where u and
                     // v are the voxel's distances from the crossing, in voxels; a sum of squares loses no digits
};

struct Box {
    ivec2 low; // the lowest voxel
    vec2 off;  // offset of this voxel's centre from the crossing, in voxels
};

#ifdef TABLE
layout(std430, binding = LR_BIND_LIST_TABLE) readonly buffer Table
{
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
    return Kernel(vec2(1.0), ivec2(2), vec3(1.0, 0.0, 0.0));
#else
    vec2 slope = vec2(step_of(line.step.xy), step_of(line.step.zw)) * voxel_mm.yz / voxel_mm.x;
    float along = inversesqrt(1.0 + dot(slope, slope));
    vec2 lean = slope * along, edge = voxel_mm.yz;
    vec2 upright = max(1.0 - lean * lean, 0.0);
    vec2 reach = tube.x * sqrt(upright.yx) / (along * edge);
    float across = sqrt(tube.w * upright.x);
    vec3 square = vec3(across * edge.x, -lean.x * lean.y * tube.w / across * edge.y,
                       tube.w * along * along / upright.x * edge.y * edge.y);
    return Kernel(reach, ivec2(2.0 * reach) + 1, square);
#endif
}

Box box_at(Kernel kernel, uvec4 at)
{
    Box box;
    ivec2 whole = ivec2(at.xz);
    vec2 part = vec2(part_of(at.y), part_of(at.w));
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

Box box_of(Line line, Kernel kernel, int j)
{
    return box_at(kernel, crossing_at(line, j));
}

// Terms that the voxels of a row have in common.
struct Row {
    float first;    // x u + y v of the row's first voxel
    float constant; // z v^2; for a thin line, the share along v
};

Row row_of(Kernel kernel, Box box, int v)
{
    float off = box.off.y + float(v);
#ifdef LINE
    return Row(box.off.x, max(1.0 - abs(off), 0.0));
#else
    return Row(kernel.square.x * box.off.x + kernel.square.y * off, kernel.square.z * off * off);
#endif
}

// The share of voxel u of a row, before the division by the slice's sum.
float share_of(Kernel kernel, Row row, int u)
{
    float off = row.first + float(u) * kernel.square.x;
#ifdef LINE
    return max(1.0 - abs(off), 0.0) * row.constant;
#else
    float square = off * off + row.constant;
    float fall = clamp((tube.z - square) * tube.y, 0.0, 1.0);
#ifdef TABLE
    float entry = min(sqrt(square), unit.z);
    int k = int(entry);
    return fall * mix(table[k], table[k + 1], entry - float(k));
#else
    return fall * exp2(-min(square, unit.z));
#endif
#endif
}

float sum_of_shares(Kernel kernel, Box box)
{
    float sum = 0.0;
    for (int v = 0; v < kernel.width.y; v++) {
        Row row = row_of(kernel, box, v);
        for (int u = 0; u < kernel.width.x; u++) sum += share_of(kernel, row, u);
    }
    return sum;
}

// The shares of the first four voxels of a row at once.
vec4 four_shares(Kernel kernel, Row row)
{
    vec4 off = row.first + kernel.square.x * vec4(0.0, 1.0, 2.0, 3.0);
#ifdef LINE
    return max(1.0 - abs(off), 0.0) * row.constant;
#else
    vec4 square = off * off + row.constant;
    vec4 fall = clamp((tube.z - square) * tube.y, 0.0, 1.0);
#ifdef TABLE
    vec4 entry = min(sqrt(square), unit.z);
    ivec4 k = ivec4(entry);
    vec4 low = vec4(table[k.x], table[k.y], table[k.z], table[k.w]);
    vec4 high = vec4(table[k.x + 1], table[k.y + 1], table[k.z + 1], table[k.w + 1]);
    return fall * mix(low, high, entry - vec4(k));
#else
    return fall * exp2(-min(square, vec4(unit.z)));
#endif
#endif
}

#ifdef LINE
// The shares of a thin line's four voxels: the two of the first row, and then the two of the next row.
vec4 thin_shares(Box box)
{
    vec4 off = vec4(box.off, box.off + 1.0);
    vec4 shares = max(1.0 - abs(off), 0.0);
    return shares.xzxz * shares.yyww;
}
#endif

// Rectangles of up to 4 x 4 voxels, and of up to 5 x 5, have code without loops.
#define NARROW 4
#define WIDE 5

bool fits(Kernel kernel, int width)
{
    return max(kernel.width.x, kernel.width.y) <= width;
}

// True if the shares of a slice are divided by their sum.
#if defined(LINE) || defined(AS_PAPER)
#define NORMALISED 0
#else
#define NORMALISED 1
#endif

bool is_within(int at, int count)
{
    return uint(at) < uint(count);
}

// Four flags for a row's first four voxels: true if the voxel is in the grid.
bvec4 columns_of(Box box)
{
    return lessThan(uvec4(box.low.x + ivec4(0, 1, 2, 3)), uvec4(uint(size.y)));
}

float sum_of(vec4 four)
{
    return four.x + four.y + (four.z + four.w);
}
