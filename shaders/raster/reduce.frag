#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Back-projection, cluster paper section IV: halves the sums of every tile, adding four texels.
//
// reads:  sums of the pass before
// writes: one sum per four texels; texels beyond the source tile count as zero
#include "common/bindings.h"
#include "raster/tile_pass.glsl"

layout(binding = LR_UNIT_SUMS) uniform sampler2D sums;

layout(location = 0) flat in ivec2 in_source_at;
layout(location = 1) flat in ivec2 in_target_at;
layout(location = 2) flat in int in_primary;

layout(location = 0) out float out_sum;

float source(ivec2 at)
{
    return all(lessThan(at, source_tile)) ? texelFetch(sums, in_source_at + at, 0).r : 0.0;
}

void main()
{
    ivec2 at = 2 * (ivec2(gl_FragCoord.xy) - in_target_at);
    out_sum = (source(at) + source(at + ivec2(1, 0))) +
              (source(at + ivec2(0, 1)) + source(at + ivec2(1, 1)));
}
