// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The gather of paper 1 of lr/direct.h, figures 2 and 3, by columns of slices.
//
// The outputs of a thread are 4 LR_DIRECT_QUADS slices of LR_DIRECT_OUTPUTS neighbouring columns, side by side along
// the axis nearer to the line of response. The thread loops over the steps of the view. A step is a source column, at a
// position relative to the first output, and four offsets along this column. The column's texels are read once into
// registers, and are used for all offsets and all outputs.
//
// reads: steps and mSRval; the source; LORmap
// writes: the target
// shape: one thread for each group of outputs; slices fastest, then along the outputs' axis
// invariant: terms are added in the order of the steps
#include "direct/direct.glsl"

// Step k has two entries. steps[2 k] = (along, across, quads, mask); steps[2 k + 1] has, for each output, the index in
// mSR of offset r = 0.
layout(std430, binding = LR_BIND_DIRECT_STEPS) readonly buffer Steps
{
    ivec4 steps[];
};
// mSRval: [offset][kernel]
layout(std430, binding = LR_BIND_DIRECT_VALUES) readonly buffer Values
{
    float values[];
};
layout(binding = LR_UNIT_DIRECT_MAP) uniform usampler2D lor_map;

// A thread's first column, and the step to its next column.
ivec2 first_column, to_next;
int first_quad;

bool find_outputs()
{
    int axis = margin.w;
    int quads = (grid.w + LR_DIRECT_QUADS - 1) / LR_DIRECT_QUADS;
    int blocks = (grid[axis] + LR_DIRECT_OUTPUTS - 1) / LR_DIRECT_OUTPUTS;
    int index = thread_index();
    int block = index / quads, across = block / blocks;
    int along = (block - across * blocks) * LR_DIRECT_OUTPUTS;
    first_quad = (index - block * quads) * LR_DIRECT_QUADS;
    first_column = axis == 0 ? ivec2(along, across) : ivec2(across, along);
    to_next = axis == 0 ? ivec2(1, 0) : ivec2(0, 1);
    return across < grid[1 - axis];
}

int kernel_of(ivec2 column)
{
    return min(int(texelFetch(lor_map, column + margin.yz, 0).x), counts.z - 1);
}

vec4 source_quad(int quad, ivec2 column)
{
    return load_source(ivec3(quad, column));
}

// Sums of output j, quad q. Here and below, all indices are literals, because some compilers do not keep arrays in
// registers if a loop indexes them.
vec4 sums[LR_DIRECT_OUTPUTS][LR_DIRECT_QUADS];

void store_quad(int j, int q, vec4 sum)
{
    ivec2 column = first_column + j * to_next;
    int quad = first_quad + q;
    if (column[margin.w] < grid[margin.w] && quad < grid.w) store_target(ivec3(quad, column), within_grid(sum, quad));
}

#define GATHER_STORE(j)                                                                                                \
    store_quad(j, 0, sums[j][0]);                                                                                      \
    store_quad(j, 1, sums[j][1]);

void store_sums()
{
    GATHER_STORE(0)
    GATHER_STORE(1)
    GATHER_STORE(2)
    GATHER_STORE(3)
}

// Adds the value at offset r of the step to output j if mask bit 4 r + j is set.
#define GATHER_ONE(r, j, low, high)                                                                                    \
    if ((now.w & (1 << (4 * r + j))) != 0) {                                                                           \
        float value = values[GATHER_OFFSET(first[j] + r) * counts.z + GATHER_ROW(j)];                                  \
        sums[j][0] += value * low;                                                                                     \
        sums[j][1] += value * high;                                                                                    \
    }

// low: four slices of the window, from slice r on; high: the four slices after them.
#define GATHER_SHIFT(r, low, high)                                                                                     \
    {                                                                                                                  \
        vec4 low_quad = low, high_quad = high;                                                                         \
        GATHER_ONE(r, 0, low_quad, high_quad)                                                                          \
        GATHER_ONE(r, 1, low_quad, high_quad)                                                                          \
        GATHER_ONE(r, 2, low_quad, high_quad)                                                                          \
        GATHER_ONE(r, 3, low_quad, high_quad)                                                                          \
    }

#define GATHER_CLEAR(j) sums[j][0] = sums[j][1] = vec4(0.0);

// Runs all steps. The includer defines three macros: GATHER_ROW(j) is output j's row of mSRval. GATHER_COLUMN(column)
// runs for each new source column. GATHER_OFFSET(i) is the offset whose value is used.
#define GATHER()                                                                                                       \
    GATHER_CLEAR(0)                                                                                                    \
    GATHER_CLEAR(1)                                                                                                    \
    GATHER_CLEAR(2)                                                                                                    \
    GATHER_CLEAR(3)                                                                                                    \
    vec4 window0 = vec4(0.0), window1 = vec4(0.0), window2 = vec4(0.0);                                                \
    for (int k = 0; k < counts.x; k++) {                                                                               \
        ivec4 now = steps[2 * k], first = steps[2 * k + 1];                                                            \
        ivec2 column = first_column + now.x * to_next + now.y * (1 - to_next);                                         \
        int quad = first_quad + now.z;                                                                                 \
        if ((now.w & LR_DIRECT_FRESH) != 0) {                                                                          \
            window0 = source_quad(quad, column);                                                                       \
            window1 = source_quad(quad + 1, column);                                                                   \
            GATHER_COLUMN(column)                                                                                      \
        } else {                                                                                                       \
            window0 = window1;                                                                                         \
            window1 = window2;                                                                                         \
        }                                                                                                              \
        window2 = source_quad(quad + 2, column);                                                                       \
        GATHER_SHIFT(0, window0, window1)                                                                              \
        GATHER_SHIFT(1, vec4(window0.yzw, window1.x), vec4(window1.yzw, window2.x))                                    \
        GATHER_SHIFT(2, vec4(window0.zw, window1.xy), vec4(window1.zw, window2.xy))                                    \
        GATHER_SHIFT(3, vec4(window0.w, window1.xyz), vec4(window1.w, window2.xyz))                                    \
    }
