#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Clears correspondence images: graphics processors made for computing have few units that clear
// what is drawn on.
//
// writes:   nothing met, weight 0, in the lowest rows of the atlas
// shape:    groups of 16 x 16 texels
layout(local_size_x = 16, local_size_y = 16) in;
layout(rg32ui, binding = 0) uniform writeonly uimage2D atlas;

void main()
{
    imageStore(atlas, ivec2(gl_GlobalInvocationID.xy), uvec4(0u));
}
