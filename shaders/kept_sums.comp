#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sums over two images.
//
// reads:     image x, other k
// writes:    of each group: sum k x, sum (x - k)^2, largest x, voxels of x that are not finite
// shape:     each thread every so-manieth voxel
// invariant: terms are added in a fixed order
#include "common/kept.glsl"

layout(std430, binding = LR_BIND_KEPT_RESULT) writeonly buffer Result {
    vec4 result[];
};

shared vec4 parts[LR_GROUP_SIZE];

bool is_finite(float x)
{
    return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u;
}

vec4 join(vec4 a, vec4 b)
{
    return vec4(a.x + b.x, a.y + b.y, max(a.z, b.z), a.w + b.w);
}

void main()
{
    vec4 sum = vec4(0.0);
    for (uint v = gl_GlobalInvocationID.x; v < extent.w; v += num_threads()) {
        float x = image[v], k = other[v];
        sum = join(sum, vec4(k * x, (x - k) * (x - k), x, is_finite(x) ? 0.0 : 1.0));
    }
    parts[gl_LocalInvocationID.x] = sum;
    for (uint half_way = uint(LR_GROUP_SIZE) / 2u; half_way > 0u; half_way /= 2u) {
        barrier();
        if (gl_LocalInvocationID.x < half_way) {
            parts[gl_LocalInvocationID.x] =
                join(parts[gl_LocalInvocationID.x], parts[gl_LocalInvocationID.x + half_way]);
        }
    }
    if (gl_LocalInvocationID.x == 0u) {
        result[gl_WorkGroupID.x] = parts[0];
    }
}
