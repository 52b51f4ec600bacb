#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The image as a volume: the activity glows in a grey haze, which shows the mu-map. Each line of sight is followed from
// the eye, or from its entry into the image's box, to its exit from the box.
#include "viewer/view.glsl"

layout(binding = 0) uniform sampler2D map;
layout(binding = 1) uniform sampler3D image;
layout(binding = 2) uniform sampler3D density;
layout(location = 0) in vec3 in_at;
layout(location = 0) out vec4 out_colour;

// The fraction of `way` at which the line of sight enters the image's box; 0 if the eye is inside the box.
float entry(vec3 from, vec3 way)
{
    vec3 inverse = 1.0 / mix(way, vec3(1e-20), lessThan(abs(way), vec3(1e-20)));
    vec3 near = min((low_mm.xyz - from) * inverse, (high_mm.xyz - from) * inverse);
    return max(max(near.x, near.y), max(near.z, 0.0));
}

void main()
{
    vec3 way = in_at - eye.xyz;
    float begin = entry(eye.xyz, way), length_mm = (1.0 - begin) * length(way);
    int count = int(clamp(ceil(length_mm / steps.x), 1.0, 512.0));
    vec3 size = high_mm.xyz - low_mm.xyz, sum = vec3(0.0);
    float open = 1.0;
    for (int k = 0; k < count && open > 0.01; k++) {
        vec3 at = (eye.xyz + mix(begin, 1.0, (float(k) + 0.5) / float(count)) * way - low_mm.xyz) / size;
        float value = clamp((texture(image, at).r - low_mm.w) / max(high_mm.w - low_mm.w, 1e-30), 0.0, 1.0);
        float haze = steps.w > 0.0 ? clamp(texture(density, at).r / steps.w, 0.0, 1.0) : 0.0;
        float opacity = 1.0 - exp(-length_mm / float(count) * (steps.y * value * value + steps.z * haze));
        vec3 colour = mix(vec3(0.62), texture(map, vec2(value, 0.5)).rgb,
                          steps.y * value * value / max(steps.y * value * value + steps.z * haze, 1e-20));
        sum += open * opacity * colour;
        open *= 1.0 - opacity;
    }
    out_colour = vec4(sum / max(1.0 - open, 1e-6), 1.0 - open);
}
