// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// What the pixels of a macropixel give to LORs: equal (r, s) are added up once, by the first pixel that
// has them. Needs common/scene.glsl, common/lor.glsl and RAYS before it.
layout(std140, binding = LR_BIND_PASS) uniform Pass {
    ivec2 tile_size;   // of the largest window, pixels
    ivec2 lors_size;   // texels of the LOR window's texture
    uint num_lors;     // in the LOR window
};

layout(binding = LR_UNIT_CORRESPONDENCE) uniform usampler2D correspondence;

// Sum of the macropixel's pixels with this pixel's crystal; 0 when an earlier pixel has it.
float macropixel_sum(ivec2 macropixel, int mine, uint crystal)
{
    float sum = 0.0;
    for (int k = 0; k < RAYS * RAYS; k++) {
        uvec2 hit = texelFetch(correspondence, macropixel + ivec2(k % RAYS, k / RAYS), 0).rg;
        if (hit.x == crystal) {
            if (k < mine) {
                return 0.0;
            }
            sum += uintBitsToFloat(hit.y);
        }
    }
    return sum;
}

// Adding `value` at a texel of the LOR window; value 0: nothing.
struct Scattered {
    ivec2 texel;
    float value;
};

Scattered scatter_pixel(Image image, ivec2 pixel)
{
    Scattered nothing = Scattered(ivec2(0), 0.0);
    Module primary = modules[image.place.x];
    if (any(greaterThanEqual(pixel, primary.crystals.xy * RAYS))) {
        return nothing;
    }
    uint crystal = texelFetch(correspondence, image.place.yz + pixel, 0).r;
    if (crystal == 0u) {
        return nothing;
    }
    ivec2 pq = pixel / RAYS;
    ivec2 within = pixel - pq * RAYS;
    float sum = macropixel_sum(image.place.yz + pq * RAYS, within.y * RAYS + within.x, crystal);
    uint other = crystal_module[crystal - 1u];
    uint lor = lor_number(uint(image.place.x), uint(pq.y * primary.crystals.x + pq.x), other,
                          crystal - 1u - uint(modules[other].crystals.z));
    if (lor >= num_lors) {
        return nothing;
    }
    ivec2 texel = ivec2(lor % uint(lors_size.x), lor / uint(lors_size.x));
    return Scattered(texel, sum * image.point_scale.w);
}
