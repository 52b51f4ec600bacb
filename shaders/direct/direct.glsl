// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Images of the family direct: 3-D textures, or arrays with BUFFERS. Texel (q, x, y) holds slices 4
// q .. 4 q + 3 of a column. Margins of zeros surround the image, so gathers need no test at its
// borders. Images without margins are always textures.
#include "common/bindings.h"

layout(local_size_x = LR_DIRECT_GROUP) in;

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    ivec4 grid;   // x, y, z: nx, ny, nz; w: quads of slices
    ivec4 margin; // x: quads; y, z: columns along x and y; w: 0 = a thread's outputs lie along x, 1 = along y
    ivec4 counts; // x: steps; y: offsets of mSR; z: rows of mSRval; w: unused
    ivec4 extent; // texels with margins. x: quads; y, z: columns along x and y
};

#ifdef BUFFERS
layout(std430, binding = LR_BIND_DIRECT_SOURCE) readonly buffer Source
{
    vec4 source[];
};
layout(std430, binding = LR_BIND_DIRECT_TARGET) buffer Target
{
    vec4 target[];
};
#else
layout(binding = LR_UNIT_DIRECT_SOURCE) uniform sampler3D source;
layout(binding = LR_IMAGE_DIRECT_TARGET, rgba32f) uniform image3D target;
#endif

// Index of a texel in an array. Here and in all functions below, coordinates are counted without margins.
int place_of(ivec3 texel)
{
    texel += margin.xyz;
    return texel.x + extent.x * (texel.y + extent.y * texel.z);
}

vec4 load_source(ivec3 texel)
{
#ifdef BUFFERS
    return source[place_of(texel)];
#else
    return texelFetch(source, texel + margin.xyz, 0);
#endif
}

vec4 load_target(ivec3 texel)
{
#ifdef BUFFERS
    return target[place_of(texel)];
#else
    return imageLoad(target, texel + margin.xyz);
#endif
}

void store_target(ivec3 texel, vec4 value)
{
#ifdef BUFFERS
    target[place_of(texel)] = value;
#else
    imageStore(target, texel + margin.xyz, value);
#endif
}

// The thread's index in the dispatch.
int thread_index()
{
    uint group = gl_WorkGroupID.x + gl_NumWorkGroups.x * gl_WorkGroupID.y;
    return int(group * uint(LR_DIRECT_GROUP) + gl_LocalInvocationIndex);
}

// A quad of slices, with zeros for slices beyond the last one.
vec4 within_grid(vec4 texel, int quad)
{
    return mix(vec4(0.0), texel, lessThan(4 * quad + ivec4(0, 1, 2, 3), ivec4(grid.z)));
}

// The thread's texel, without margins; false if the thread has none.
bool find_texel(out ivec3 texel)
{
    int index = thread_index();
    int column = index / grid.w;
    texel = ivec3(index - column * grid.w, column % grid.x, column / grid.x);
    return texel.z < grid.y;
}
