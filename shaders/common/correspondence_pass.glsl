// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Uniforms of the correspondence pass; mirrored in src/render/correspondence.c.
layout(std140, binding = LR_BIND_PASS) uniform Pass {
    vec2 atlas_size; // texels
    int mu_steps;    // samples along a line
    float unused_;
    vec4 mu_origin_mm; // centre of the attenuation map's first voxel
    vec4 mu_per_mm;    // its voxels per mm along each axis
};
