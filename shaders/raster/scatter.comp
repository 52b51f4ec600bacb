#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// raster/scatter.vert without points: graphics processors made for computing have few units that draw
// them. Values are added in any order.
//
// reads:    correspondence atlas, images, modules, crystal_module, pairs
// adds to:  LOR values, each distinct LOR of a macropixel once
// shape:    groups (image, 16 x 16 pixels of the largest window)
// variants: RAYS=4; RAYS=1
#extension GL_NV_shader_atomic_float : enable
#include "common/scene.glsl"
#include "common/lor.glsl"

#ifndef RAYS
#define RAYS 4
#endif
#include "raster/macropixel.glsl"

layout(local_size_x = 16, local_size_y = 16) in;
#ifdef GL_NV_shader_atomic_float
layout(r32f, binding = LR_IMAGE_LORS) uniform image2D lors;

void add(ivec2 texel, float value)
{
    imageAtomicAdd(lors, texel, value);
}
#else
layout(r32ui, binding = LR_IMAGE_LORS) uniform uimage2D lors;

void add(ivec2 texel, float value)
{
    uint old = imageLoad(lors, texel).r, seen = ~old;
    while (seen != old) {
        seen = old;
        old = imageAtomicCompSwap(lors, texel, seen, floatBitsToUint(uintBitsToFloat(seen) + value));
    }
}
#endif

void main()
{
    ivec2 pixel = 16 * ivec2(gl_WorkGroupID.yz) + ivec2(gl_LocalInvocationID.xy);
    Scattered at = scatter_pixel(images[gl_WorkGroupID.x], pixel);
    if (at.value != 0.0) {
        add(at.texel, at.value);
    }
}
