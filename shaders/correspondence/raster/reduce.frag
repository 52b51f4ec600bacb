#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Back-projection, cluster paper section IV: halves the edges of every tile, by adding up four texels. STEP=1: adds
// every texel of one texture to another texture, by blending.
//
// reads:     sums of the previous pass
// writes:    one sum per STEP x STEP texels; texels beyond the source's tile count as zero
// invariant: sums are added in a fixed order
// variants:  STEP=2; STEP=1
#include "common/bindings.h"

#ifndef STEP
#define STEP 2
#endif

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    ivec2 source_tile, target_tile; // texels
};

layout(binding = LR_UNIT_SUMS) uniform sampler2D sums;

layout(location = 0) out float out_sum;

void main()
{
    ivec2 at = ivec2(gl_FragCoord.xy);
    ivec2 tile = at / target_tile;
    ivec2 corner = STEP * (at - tile * target_tile);
    out_sum = 0.0;
    for (int y = corner.y; y < min(corner.y + STEP, source_tile.y); y++)
        for (int x = corner.x; x < min(corner.x + STEP, source_tile.x); x++)
            out_sum += texelFetch(sums, tile * source_tile + ivec2(x, y), 0).r;
}
