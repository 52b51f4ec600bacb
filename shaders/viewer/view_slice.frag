#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// A slice of the image in the colours of `map`. The image `above` is the overlay: it is blended over the slice in the
// colours of `above_map`; larger values of the overlay cover more.
#include "viewer/view.glsl"

layout(binding = 0) uniform sampler2D map;
layout(binding = 1) uniform sampler3D image;
layout(binding = 2) uniform sampler3D above;
layout(binding = 3) uniform sampler2D above_map;
layout(location = 0) in vec3 in_at;
layout(location = 0) out vec4 out_colour;

void main()
{
    float value = (texture(image, in_at).r - low_mm.w) / max(high_mm.w - low_mm.w, 1e-30);
    vec3 colour = texture(map, vec2(value, 0.5)).rgb;
    if (overlay.x > 0.0) {
        float share = texture(above, in_at).r / overlay.x;
        colour =
            mix(colour, texture(above_map, vec2(share, 0.5)).rgb, share > 0.0 ? 0.25 + 0.75 * min(share, 1.0) : 0.0);
    }
    out_colour = vec4(colour, 1.0);
}
