// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Uniforms of the reduction passes; mirrored in src/render/raster/back.c.
layout(std140, binding = LR_BIND_PASS) uniform Pass {
    ivec2 full_tile;   // tile of the correspondence atlas, texels
    ivec2 source_tile; // tile that is read
    ivec2 target_tile; // tile that is written: half of it, rounded up
    ivec2 target_size; // the whole target
    ivec2 lors_size;   // texels of the LOR window's texture
    uint num_lors;     // in the LOR window
};
