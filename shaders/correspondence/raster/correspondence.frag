#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Correspondence image, cluster paper section II.B: one pixel is one line through the primary. The hit on the secondary
// is computed from the pixel, not interpolated (docs/method/correspondence.md, "Sampled mode").
//
// reads: modules, coincidence masks, attenuation map
// writes: crystal of the secondary + 1 (0: none), and the bits of the line's weight. PATH_LENGTH:
//            also the distance between the hits in mm; crystals out of coincidence are written too,
//            with weight 0. HIDING: also the depth, which selects a module between the point and
//            the primary if there is one, otherwise the first module that the line meets on the
//            secondary's side
// invariant: a hit in a gap or out of coincidence still stops the line
// variants:  RAYS=4; RAYS=3 PATH_LENGTH=1; RAYS=4 ABSORPTION=1; RAYS=4 HIDING=1
// variants:  RAYS=3 HIDING=1 PATH_LENGTH=1; RAYS=2 HIDING=1 ABSORPTION=1
#include "correspondence/scene.glsl"

#include "correspondence/coincidence.glsl"
#include "correspondence/lor.glsl"
#include "correspondence/raster/correspondence_pass.glsl"
#ifdef ABSORPTION
#include "correspondence/absorption.glsl"
#endif

layout(location = 0) flat in vec4 in_primary;
layout(location = 1) flat in vec4 in_denominator;
layout(location = 2) flat in vec4 in_along_u;
layout(location = 3) flat in vec4 in_along_v;
layout(location = 4) flat in vec4 in_samples;
layout(location = 5) flat in vec4 in_cells;
layout(location = 6) flat in ivec4 in_tile;
layout(location = 7) flat in ivec4 in_secondary;
layout(location = 8) flat in uvec4 in_mask;
layout(location = 9) flat in ivec2 in_primary_size;
#ifdef HIDING
layout(location = 10) flat in uint in_role;
#endif

layout(location = 0) out uvec2 out_hit;
#ifdef PATH_LENGTH
layout(location = 1) out float out_path_mm;
#endif

// Coordinates of a pixel's sample point on the primary's detection plane, relative to the primary's centre.
vec2 sample_mm(ivec2 pixel, ivec2 crystal, ivec2 crystals)
{
    vec2 within = vec2(pixel - crystal * RAYS) - 0.5 * float(RAYS - 1);
    return (vec2(crystal) - 0.5 * vec2(crystals - 1)) * in_samples.xy + within * in_samples.zw;
}

// Sets rs to the crystal whose face contains the hit, or to -1 if the hit is in a gap. Returns false if the hit is
// outside the module.
bool find_crystal(vec2 hit, out ivec2 rs)
{
    vec2 cells = vec2(in_secondary.xy);
    vec2 cell = hit * in_cells.xy + 0.5 * cells;
    if (any(lessThan(cell, vec2(0.0))) || any(greaterThan(cell, cells))) return false;
    rs = min(ivec2(cell), in_secondary.xy - 1);
    vec2 from_centre = abs(cell - vec2(rs) - 0.5);
    if (any(greaterThan(from_centre, in_cells.zw))) rs = ivec2(-1);
    return true;
}

#ifdef ABSORPTION
float line_survival(vec2 at, float t, float length_mm)
{
    Image image = images[in_tile.w];
    Module primary = modules[in_tile.z];
    vec3 to_hit = to_centre(image, primary) + at.x * primary.u_face_u.xyz + at.y * primary.v_face_v.xyz;
    vec3 point = image.point_scale.xyz - mu_origin_mm.xyz;
    return survival((point + to_hit) * mu_per_mm.xyz, (point - t * to_hit) * mu_per_mm.xyz, length_mm, mu_steps);
}
#endif

void main()
{
    ivec2 pixel = ivec2(gl_FragCoord.xy) - in_tile.xy;
    ivec2 pq = ivec2(uvec2(pixel) / uint(RAYS));
    vec2 at = sample_mm(pixel, pq, in_primary_size);

    float denominator = in_denominator.x + in_denominator.y * at.x + in_denominator.z * at.y;
    if (denominator <= 0.0) discard;
#ifdef HIDING
    bool before = in_role == ROLE_BEFORE;
    if (before && denominator + in_denominator.w <= 0.0) discard; // the hit is beyond the primary's plane
#endif
    float t = in_denominator.w / denominator;
    vec2 hit = vec2(in_along_u.w - t * (in_along_u.x + in_along_u.y * at.x + in_along_u.z * at.y),
                    in_along_v.w - t * (in_along_v.x + in_along_v.y * at.x + in_along_v.z * at.y));
    ivec2 rs;
    if (!find_crystal(hit, rs)) discard;
#ifdef HIDING
    rs = in_role >= ROLE_BACK ? ivec2(-1) : rs;
#endif
    vec2 d = in_primary.xy + at;
    float distance_squared = dot(d, d) + in_primary.z * in_primary.z;
    float per_mm = inversesqrt(distance_squared);
    float length_mm = (1.0 + t) * distance_squared * per_mm;
    uint crystal = uint(in_secondary.z + rs.y * in_secondary.x + rs.x) + 1u;
    out_hit = uvec2(0u);
#ifdef PATH_LENGTH
    out_hit.x = rs.x >= 0 ? crystal : 0u;
#endif
    Mask mask = Mask(in_mask.x, in_mask.y, in_mask.z, in_mask.w != 0u);
#ifdef HIDING
    mask.kind = in_role == ROLE_PAIR ? mask.kind : LR_NONE;
#endif
    if (rs.x >= 0 && in_coincidence(mask, pq, in_primary_size, rs, in_secondary.xy)) {
        float weight = in_primary.w * per_mm * per_mm * per_mm;
#ifdef ABSORPTION
        weight *= line_survival(at, t, length_mm);
#endif
        out_hit = uvec2(crystal, floatBitsToUint(weight));
    }
#ifdef PATH_LENGTH
    out_path_mm = length_mm;
#endif
#ifdef HIDING
    gl_FragDepth = before ? 0.0 : t / (1.0 + t);
#endif
}
