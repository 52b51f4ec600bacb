#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Copies an image into a texture.
//
// reads:  image, in the projector's order
// writes: texel (x, y, z)
// shape:  each thread every so-manieth voxel of the grid
#include "common/kept.glsl"

layout(binding = LR_IMAGE_KEPT_COPY, r32f) writeonly uniform image3D texels;

void main()
{
    for (uint v = gl_GlobalInvocationID.x; v < extent.w; v += num_threads()) {
        uvec3 at = uvec3(v % extent.x, v / extent.x % extent.y, v / extent.x / extent.y);
        uvec3 steps = at * strides.xyz;
        imageStore(texels, ivec3(at), vec4(image[steps.x + steps.y + steps.z]));
    }
}
