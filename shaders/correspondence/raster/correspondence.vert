#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Correspondence image, cluster paper section II.A: the eye is the sample point, the window is the primary module, and
// the secondary is mirrored through the eye.
//
// reads: modules, images, draws (one instance each: image, secondary module); with HIDING also
//           draws of modules that only stop lines, on either side of the point
// writes: the mirrored rectangle of the secondary in the image's tile, slightly enlarged, and
//           constants from which the fragment computes the hit
// shape: triangle strip of 4 vertices, one instance per draw
// variants: RAYS=4; RAYS=3; RAYS=3 HIDING=1
#include "correspondence/scene.glsl"

#include "correspondence/coincidence.glsl"
#include "correspondence/lor.glsl"
#include "correspondence/raster/correspondence_pass.glsl"
#include "correspondence/sight.glsl"

layout(std430, binding = LR_BIND_DRAWS) readonly buffer Draws
{
    uvec2 draws[]; // image, secondary module
};

// The primary as seen from the eye. x, y: coordinates of the primary's centre along u and v; z: height of the eye over
// the primary's plane; w: area of a sample, times this height / 2 pi.
layout(location = 0) flat out vec4 out_primary;
layout(location = 1) flat out vec4 out_denominator;   // Sight.denominator (correspondence/sight.glsl)
layout(location = 2) flat out vec4 out_along_u;       // Sight.along_u
layout(location = 3) flat out vec4 out_along_v;       // Sight.along_v
layout(location = 4) flat out vec4 out_samples;       // x, y: pitch along u and v; z, w: sample spacing
layout(location = 5) flat out vec4 out_cells;         // secondary: x, y: 1 / pitch; z, w: half the face / pitch
layout(location = 6) flat out ivec4 out_tile;         // x, y: left and lower texel; z: primary; w: image
layout(location = 7) flat out ivec4 out_secondary;    // x, y: crystals along u, v; z: first crystal; w: module
layout(location = 8) flat out uvec4 out_mask;         // x: kind; y, z: offsets; w: 1 if swapped
layout(location = 9) flat out ivec2 out_primary_size; // crystals along u and v
#ifdef HIDING
layout(location = 10) flat out uint out_role; // ROLE_ bits
#endif

// Projects a direction from the eye to the window, as a homogeneous point in pixels. The third coordinate is positive
// if the direction is towards the primary.
vec3 to_window(vec3 direction, Module primary, vec3 centre)
{
    float scale = dot(primary.normal.xyz, direction) / dot(primary.normal.xyz, centre);
    float x = dot(primary.u_face_u.xyz, direction) - scale * dot(primary.u_face_u.xyz, centre);
    float y = dot(primary.v_face_v.xyz, direction) - scale * dot(primary.v_face_v.xyz, centre);
    vec2 pixels_per_mm = RAYS / vec2(primary.centre_pitch_u.w, primary.rest_pitch_v.w);
    return vec3(vec2(x, y) * pixels_per_mm + scale * 0.5 * RAYS * vec2(primary.crystals.xy), scale);
}

// Corner k of the secondary, as a pixel of the window. mirror: 1 for a module between the point and the primary,
// otherwise -1.
vec3 corner(int k, Module primary, vec3 centre, Module secondary, vec3 other, float mirror)
{
    vec2 side = vec2(k == 1 || k == 2 ? 0.5 : -0.5, k >= 2 ? 0.5 : -0.5);
    vec2 at = side * vec2(secondary.crystals.xy) * vec2(secondary.centre_pitch_u.w, secondary.rest_pitch_v.w);
    vec3 point = other + at.x * secondary.u_face_u.xyz + at.y * secondary.v_face_v.xyz;
    return to_window(mirror * point, primary, centre);
}

// The plane through the eye and an edge, shifted outwards by a margin. Its normal points towards `inside`.
vec3 edge(vec3 from, vec3 to, vec3 inside, vec2 margin)
{
    vec3 plane = cross(from, to);
    plane *= dot(plane, inside) < 0.0 ? -1.0 : 1.0;
    plane.z += dot(abs(plane.xy), margin);
    return plane;
}

// The largest distance between a pixel's centre and its sample, plus half a pixel because vertices are snapped to a
// raster. A sample is not at the centre, because samples are spread over faces, and pixels over pitch cells.
vec2 window_margin(Module primary)
{
    vec2 pitch = vec2(primary.centre_pitch_u.w, primary.rest_pitch_v.w);
    vec2 face = vec2(primary.u_face_u.w, primary.v_face_v.w);
    return 0.5 + 0.5 * RAYS * (1.0 - face / pitch);
}

void write_position(vec3 window, ivec2 tile_at, ivec2 tile_size)
{
    vec2 pixel = window.xy + vec2(tile_at) * window.z;
    gl_Position = vec4(2.0 * pixel / atlas_size - window.z, 0.0, window.z);
    gl_ClipDistance[0] = window.x;
    gl_ClipDistance[1] = window.y;
    gl_ClipDistance[2] = float(tile_size.x) * window.z - window.x;
    gl_ClipDistance[3] = float(tile_size.y) * window.z - window.y;
}

void main()
{
    uvec2 draw = draws[gl_InstanceID];
    Image image = images[draw.x];
    Module primary = modules[image.place.x];
#ifdef HIDING
    uint secondary_index = draw.y & LR_DRAW_MODULE;
    float mirror = (draw.y & LR_BEFORE_PRIMARY) != 0u ? 1.0 : -1.0;
#else
    uint secondary_index = draw.y;
    const float mirror = -1.0;
#endif
    Module secondary = modules[secondary_index];
    vec3 centre = to_centre(image, primary); // vector from the point to the primary's centre
    vec3 other = to_centre(image, secondary);

    int k = gl_VertexID < 2 ? gl_VertexID : 5 - gl_VertexID; // converts the order of a triangle strip to the order
                                                             // around the rectangle
    vec3 before = corner((k + 3) & 3, primary, centre, secondary, other, mirror);
    vec3 here = corner(k, primary, centre, secondary, other, mirror);
    vec3 after = corner((k + 1) & 3, primary, centre, secondary, other, mirror);
    vec3 opposite = corner((k + 2) & 3, primary, centre, secondary, other, mirror);
    vec2 margin = window_margin(primary);
    vec3 ray = cross(edge(before, here, after, margin), edge(here, after, before, margin));
    ray *= dot(edge(after, opposite, here, margin), ray) < 0.0 ? -1.0 : 1.0;
#ifdef HIDING
    // If a corner is at least as high over the primary's plane as the point, the rectangle reaches to infinity in
    // pixels. The whole window is then drawn.
    if (min(min(before.z, here.z), min(after.z, opposite.z)) <= 0.0)
        ray = vec3(k == 1 || k == 2 ? primary.crystals.x * RAYS : 0, k >= 2 ? primary.crystals.y * RAYS : 0, 1.0);
#endif
    write_position(ray, image.place.yz, primary.crystals.xy * RAYS);

    float area = primary.u_face_u.w * primary.v_face_v.w / (RAYS * RAYS);
    float height = -dot(primary.normal.xyz, centre);
    out_primary = vec4(dot(primary.u_face_u.xyz, centre), dot(primary.v_face_v.xyz, centre), height,
                       area * height / 6.283185307179586);
#ifdef HIDING
    Sight sight = make_hiding_sight(primary, centre, secondary, other, draw.y);
    out_role = (draw.y & LR_BEFORE_PRIMARY) != 0u       ? ROLE_BEFORE
               : (draw.y & LR_ONLY_STOPS) == 0u         ? ROLE_PAIR
               : dot(secondary.normal.xyz, other) < 0.0 ? ROLE_FARTHER
                                                        : ROLE_BACK;
#else
    Sight sight = make_sight(primary, centre, secondary, other);
#endif
    out_denominator = sight.denominator;
    out_along_u = sight.along_u;
    out_along_v = sight.along_v;
    vec2 face = vec2(primary.u_face_u.w, primary.v_face_v.w);
    out_samples = vec4(primary.centre_pitch_u.w, primary.rest_pitch_v.w, face / RAYS);
    vec2 cell = vec2(secondary.centre_pitch_u.w, secondary.rest_pitch_v.w);
    out_cells = vec4(1.0, 1.0, 0.5 * vec2(secondary.u_face_u.w, secondary.v_face_v.w)) / cell.xyxy;
    out_tile = ivec4(image.place.yz, image.place.x, draw.x);
    out_secondary = ivec4(secondary.crystals.xyz, secondary_index);
    Mask mask = pair_mask(uint(image.place.x), secondary_index);
    out_mask = uvec4(mask.kind, mask.offset_a, mask.offset_b, uint(mask.swapped));
    out_primary_size = primary.crystals.xy;
}
