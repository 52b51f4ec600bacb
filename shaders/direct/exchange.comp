#version 450 core
// variants: BUFFERS=1; TO_IMAGE=1; TO_IMAGE=1 BUFFERS=1; TO_SUM=1; TO_SUM=1 BUFFERS=1
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Copies between an image and a vector in the order of the grid. The vector is in double with TO_SUM, otherwise in
// single precision.
//
// reads: with TO_IMAGE the vector; otherwise an image, and with TO_SUM also the vector if the image
//         is added to it
// writes: with TO_IMAGE an image; otherwise the vector
// shape: one thread for each texel; neighbouring threads have neighbours along x
#include "direct/direct.glsl"

#ifdef TO_SUM
#define REAL double
#else
#define REAL float
#endif

layout(std430, binding = LR_BIND_DIRECT_VECTOR) buffer Vector
{
    REAL numbers[];
};

// The thread's texel, without margins; false if the thread has none.
bool find_texel_along_x(out ivec3 texel)
{
    int index = thread_index();
    int row = index / grid.x;
    texel = ivec3(row / grid.y, index - row * grid.x, row % grid.y);
    return texel.x < grid.w;
}

// Index of slice z of a texel's column in the vector, which begins at counts.x.
int place_in_vector(ivec3 texel, int z)
{
    return counts.x + texel.y + grid.x * (texel.z + grid.y * z);
}

void main()
{
    ivec3 texel;
    if (!find_texel_along_x(texel)) return;
    int slices = min(grid.z - 4 * texel.x, 4);
#ifdef TO_IMAGE
    vec4 values = vec4(0.0);
    for (int k = 0; k < slices; k++) values[k] = float(numbers[place_in_vector(texel, 4 * texel.x + k)]);
    store_target(texel, values);
#else
    vec4 values = load_source(texel);
    for (int k = 0; k < slices; k++) {
        int at = place_in_vector(texel, 4 * texel.x + k);
#ifdef TO_SUM
        numbers[at] = (counts.y != 0 ? numbers[at] : 0.0lf) + double(values[k]);
#else
        numbers[at] = values[k];
#endif
    }
#endif
}
