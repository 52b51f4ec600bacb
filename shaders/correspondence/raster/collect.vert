#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Last step of a back-projection: adds up the images of one voxel, and writes the sum to the voxel's texel.
//
// reads:  one texel per image, rows of the batch
// writes: one point per row; additive blending adds the parts of a row that is in several batches
// shape:  points, one vertex per row
#include "correspondence/rows.glsl"

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    ivec2 image_size; // texels of the voxel image
    int columns;      // tiles in a row of the atlas
};

layout(binding = LR_UNIT_SUMS) uniform sampler2D sums;

layout(location = 0) flat out float out_value;

void main()
{
    Row row = rows[gl_VertexID];
    float sum = 0.0;
    for (uint image = row.first_image; image < row.end_image; image++)
        sum += texelFetch(sums, ivec2(image % uint(columns), image / uint(columns)), 0).r;
    out_value = sum * row.factor;
    vec2 texel = vec2(row.voxel % uint(image_size.x), row.voxel / uint(image_size.x)) + 0.5;
    gl_Position = vec4(2.0 * texel / vec2(image_size) - 1.0, 0.0, 1.0);
    gl_PointSize = 1.0;
}
