// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Uniforms of the correspondence pass; src/correspondence/raster/correspondence.c declares the same block. With HIDING,
// this file also has the roles of drawn modules.
layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    vec2 atlas_size; // texels
    int mu_steps;    // samples along a line
    float unused_;
    vec4 mu_origin_mm; // centre of the attenuation map's first voxel
    vec4 mu_per_mm;    // voxels of the map per mm along each axis
};

#ifdef HIDING
const uint ROLE_PAIR = 0u;    // nearer to the point than the primary, and faces the point: LORs join this module and
                              // the primary
const uint ROLE_FARTHER = 1u; // faces the point, but is the primary of this pair
const uint ROLE_BACK = 2u;    // lines hit this module from behind
const uint ROLE_BEFORE = 3u;  // stops lines between the point and the primary
#endif
