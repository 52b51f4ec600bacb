// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Absorption along a line, by sampling the attenuation map step by step (docs/method/common.md, "Attenuation"). The
// code interpolates between voxels itself. Texture units interpolate with 8-bit fractions, which are too coarse for a
// matrix element.

layout(binding = LR_UNIT_MU) uniform sampler3D mu_map; // 1/mm

float mu_texel(ivec3 at)
{
    ivec3 size = textureSize(mu_map, 0);
    if (any(lessThan(at, ivec3(0))) || any(greaterThanEqual(at, size))) return 0.0;
    return texelFetch(mu_map, at, 0).r;
}

// The attenuation at a position in voxel coordinates, in which the centres of voxels have integer coordinates.
float mu_at(vec3 at)
{
    vec3 low = floor(at);
    vec3 f = at - low;
    ivec3 k = ivec3(low);
    float m00 = mix(mu_texel(k), mu_texel(k + ivec3(1, 0, 0)), f.x);
    float m10 = mix(mu_texel(k + ivec3(0, 1, 0)), mu_texel(k + ivec3(1, 1, 0)), f.x);
    float m01 = mix(mu_texel(k + ivec3(0, 0, 1)), mu_texel(k + ivec3(1, 0, 1)), f.x);
    float m11 = mix(mu_texel(k + ivec3(0, 1, 1)), mu_texel(k + ivec3(1, 1, 1)), f.x);
    return mix(mix(m00, m10, f.y), mix(m01, m11, f.y), f.z);
}

// The probability that no photon of the pair is absorbed between start and end, which are in voxel coordinates.
// length_mm: distance between start and end.
float survival(vec3 start, vec3 end, float length_mm, int steps)
{
    vec3 direction = end - start;
    float sum = 0.0;
    for (int k = 0; k < steps; k++) sum += mu_at(start + direction * ((float(k) + 0.5) / float(steps)));
    return exp(-sum * length_mm / float(steps));
}
