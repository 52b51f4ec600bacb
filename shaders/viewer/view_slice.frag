#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// A slice of the image in the colours of `map`, alone or combined with the image `other`, in the scene and in panes.
// The image `above` is the overlay, which is blended over the slice in the colours of `above_map`. The larger its value,
// the more it covers. Voxels of the region of interest are tinted.
#include "viewer/view.glsl"

layout(binding = 0) uniform sampler2D map;
layout(binding = 1) uniform sampler3D image;
layout(binding = 2) uniform sampler3D above;
layout(binding = 3) uniform sampler2D above_map;
layout(binding = 4) uniform sampler3D other;
layout(binding = 5) uniform sampler2D other_map; // colours of the second image; diverging for differences and ratios
layout(location = 0) in vec3 in_at;
layout(location = 0) out vec4 out_colour;

const int FUSED = 1, DIFFERENCE = 2, RATIO = 3, CHECKERED = 4;
const int BOX = 1, ELLIPSOID = 2;

// The value of an image at a place. The coordinates of places in the image's box are 0 .. 1. The value is 0 outside of
// the box. Interpolation keeps the value of an edge voxel up to its outer face.
float value_at(sampler3D from, vec3 at)
{
    if (style.y == 0) return texture(from, at).r;
    if (any(lessThan(at, vec3(0.0))) || any(greaterThan(at, vec3(1.0)))) return 0.0;
    ivec3 last = textureSize(from, 0) - 1;
    vec3 place = clamp(at * vec3(last + 1) - 0.5, vec3(0.0), vec3(last)), share = fract(place);
    float sum = 0.0;
    for (int k = 0; k < 8; k++) {
        ivec3 corner = ivec3(k & 1, k >> 1 & 1, k >> 2);
        vec3 weight = mix(1.0 - share, share, vec3(corner));
        sum += weight.x * weight.y * weight.z * texelFetch(from, min(ivec3(place) + corner, last), 0).r;
    }
    return sum;
}

// The value on the slice; with style.z = 1, the largest value along the axis.
float shown_at(sampler3D from, vec3 at)
{
    if (style.z == 0) return value_at(from, at);
    int axis = shown.x, count = textureSize(from, 0)[axis];
    float most = -1e38;
    for (int k = 0; k < count; k++) {
        at[axis] = (float(k) + 0.5) / float(count);
        most = max(most, value_at(from, at));
    }
    return most;
}

void main()
{
    vec3 mm = mix(low_mm.xyz, high_mm.xyz, in_at);
    float span = max(high_mm.w - low_mm.w, 1e-30), own = shown_at(image, in_at);
    vec3 colour = texture(map, vec2((own - low_mm.w) / span, 0.5)).rgb;
    if (style.x > 0) {
        float beside = shown_at(other, (mm - other_low_mm.xyz) / (other_high_mm.xyz - other_low_mm.xyz));
        float place = (beside - other_low_mm.w) / max(other_high_mm.w - other_low_mm.w, 1e-30);
        if (style.x == DIFFERENCE) place = 0.5 + 0.5 * (own - beside) / span;
        if (style.x == RATIO) place = 0.5 + 0.5 * log2(max(own, 1e-30) / max(beside, 1e-30));
        vec3 second = texture(other_map, vec2(place, 0.5)).rgb;
        if (style.x == RATIO && min(own, beside) <= 0.0) second = vec3(0.5); // there is no ratio
        ivec3 field = ivec3(floor((mm - low_mm.xyz) / max(mixing.y, 1e-30)));
        field[shown.x] = 0;
        float opacity = style.x == FUSED       ? mixing.x
                        : style.x != CHECKERED ? 1.0
                                               : float(field.x + field.y + field.z & 1);
        colour = mix(colour, second, opacity);
    }
    if (style.w > 0 && style.z == 0) {
        vec3 size = vec3(textureSize(image, 0)), voxel = clamp(floor(in_at * size), vec3(0.0), size - 1.0);
        vec3 off =
            (mix(low_mm.xyz, high_mm.xyz, (voxel + 0.5) / size) - region_mm.xyz) / max(region_half_mm.xyz, 1e-30);
        float value = texelFetch(image, ivec3(voxel), 0).r;
        bool inside =
            style.w == BOX ? all(lessThanEqual(abs(off), vec3(1.0))) : style.w != ELLIPSOID || dot(off, off) <= 1.0;
        if (inside && value >= region_mm.w && value <= region_half_mm.w)
            colour = mix(colour, vec3(1.0, 0.62, 0.11), 0.45);
    }
    if (overlay.x > 0.0 && style.z == 0) {
        float share = texture(above, in_at).r / overlay.x;
        colour =
            mix(colour, texture(above_map, vec2(share, 0.5)).rgb, share > 0.0 ? 0.25 + 0.75 * min(share, 1.0) : 0.0);
    }
    out_colour = vec4(colour, 1.0);
}
