#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// An image from the grid's order to slices across an axis; with TO_GRID sums of slices to the grid's
// order, which are zero afterwards.
//
// reads:  the image in the grid's order, from window.w on; with TO_GRID sums, and the image where window.z
//         says that they are added to it
// writes: the image in slices, or in the grid's order
// shape:  threads in turn
// variants: TO_GRID=1
#include "listmode/pass.glsl"
#ifdef TO_GRID
#include "listmode/scale.glsl"
#endif

layout(local_size_x = LR_EVENTS_GROUP) in;

layout(std430, binding = LR_BIND_LIST_GRID) buffer Grid {
    float grid[];
};
#ifdef TO_GRID
layout(std430, binding = LR_BIND_LIST_SUMS) buffer Sums {
    uvec2 sums[];
};

// What a sum of 1 stands for: a normal number in double.
double unit_of_sums()
{
    int exponent = largest_term_exponent() - int(unit.x);
    return packDouble2x32(uvec2(0u, uint(1023 + exponent) << 20));
}
#else
layout(std430, binding = LR_BIND_LIST_SLICES) writeonly buffer Slices {
    float image[];
};
#endif

uint place_in_grid(uint k)
{
    uint u = k % uint(size.y), line = k / uint(size.y);
    uint v = line % uint(size.z), s = line / uint(size.z);
    return uint(window.w) + s * uint(strides.x) + u * uint(strides.y) + v * uint(strides.z);
}

void main()
{
    uint all = gl_NumWorkGroups.x * LR_EVENTS_GROUP;
    for (uint k = gl_GlobalInvocationID.x; k < uint(strides.w); k += all) {
        uint at = place_in_grid(k);
#ifdef TO_GRID
        uvec2 words = sums[k];
        double sum = double(int(words.y)) * 4294967296.0lf + double(words.x);
        float value =
            sums_are_floats() ? uintBitsToFloat(words.x) : float(sum * unit_of_sums());
        sums[k] = uvec2(0u);
        grid[at] = window.z != 0 ? grid[at] + value : value;
#else
        image[k] = grid[at];
#endif
    }
}
