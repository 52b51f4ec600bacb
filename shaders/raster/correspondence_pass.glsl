// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Uniforms of the correspondence pass; mirrored in src/render/raster/correspondence.c. And, with HIDING,
// what a module that is drawn is to the image.
layout(std140, binding = LR_BIND_PASS) uniform Pass {
    vec2 atlas_size; // texels
    int mu_steps;    // samples along a line
    float unused_;
    vec4 mu_origin_mm; // centre of the attenuation map's first voxel
    vec4 mu_per_mm;    // its voxels per mm along each axis
};

#ifdef HIDING
const uint ROLE_PAIR = 0u;    // nearer than the primary and facing the point: LORs
const uint ROLE_FARTHER = 1u; // faces the point, but the pair's roles are the other way round
const uint ROLE_BACK = 2u;    // met from behind
const uint ROLE_BEFORE = 3u;  // between the point and the primary
#endif
