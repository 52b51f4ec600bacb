// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Common part of the compute passes. A workgroup works on one image, that is on a sample point and a primary module.
// Each thread works on one primary crystal after another, and passes each matrix element of the crystal to emit(). The
// including file defines void emit(uint lor, float weight); lor is the number within the LOR window.
//
// PENETRATION: each thread works on one line after another. HIDING: the image also lists modules that stop lines.
// Modules between the point and the primary come before number `first_secondary`.
#include "correspondence/scene.glsl"

#include "correspondence/coincidence.glsl"
#include "correspondence/lor.glsl"
#include "correspondence/sight.glsl"
#ifdef ABSORPTION
#include "correspondence/absorption.glsl"
#endif

layout(local_size_x = LR_GROUP_SIZE) in;

layout(std430, binding = LR_BIND_DRAWS) readonly buffer Draws
{
    uvec2 draws[]; // x: image; y: secondary module; the draws of an image are consecutive
};

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    uint num_draws;
    uint num_lors; // LORs of the window
    uint capacity; // capacity of the element list, for rows passes only
    int mu_steps;
    vec4 mu_origin_mm;
    vec4 mu_per_mm;
    float detection_depth_mm;
    int last_rounds; // with LIMITED_LOOPS: rounds of the test loop at the end (common/loops.glsl)
};

#ifdef LIMITED_LOOPS
#include "common/loops.glsl"

layout(std430, binding = LR_BIND_CUT_SHORT) writeonly buffer CutShort
{
    uint cut_short;
};

void check_loops()
{
    if (were_loops_ended(last_rounds)) cut_short = 1u;
}
#endif

#ifdef PENETRATION
#include "correspondence/target_penetration.glsl"
#else
// A secondary module as seen by the workgroup's image.
struct Target {
    Sight sight;
    vec4 cells;   // x, y: pitch; z, w: half the face
    ivec4 module; // x, y: crystals along u and v; z: crystals in all; w: module
    uvec4 mask;   // x: kind; y, z: offsets; w: first LOR of the pair in the window
#ifdef HIDING
    uint draw;    // the module's entry in the draws, with flags
#endif
};

Target make_target(Image image, Module primary, uint draw)
{
    Target target;
#ifdef HIDING
    uint secondary_index = draw & LR_DRAW_MODULE;
    Module secondary = modules[secondary_index];
    Mask mask = pair_mask(uint(image.place.x), secondary_index);
    mask.kind = (draw & (LR_ONLY_STOPS | LR_BEFORE_PRIMARY)) == 0u ? mask.kind : LR_NONE;
    target.sight = make_hiding_sight(primary, to_centre(image, primary), secondary, to_centre(image, secondary), draw);
    target.draw = draw;
#else
    uint secondary_index = draw;
    Module secondary = modules[secondary_index];
    Mask mask = pair_mask(uint(image.place.x), secondary_index);
    target.sight = make_sight(primary, to_centre(image, primary), secondary, to_centre(image, secondary));
#endif
    target.cells = vec4(secondary.centre_pitch_u.w, secondary.rest_pitch_v.w, 0.5 * secondary.u_face_u.w,
                        0.5 * secondary.v_face_v.w);
    target.module = ivec4(secondary.crystals.xy, secondary.crystals.w, secondary_index);
    uint pair = uint(image.place.x) * uint(modules.length()) + secondary_index;
    target.mask = uvec4(mask.kind, mask.offset_a, mask.offset_b, pairs[pair].first_lor);
    return target;
}
#endif

shared Target targets[LR_MAX_TARGETS];
shared int num_targets;
#ifdef HIDING
shared int first_secondary;
#else
const int first_secondary = 0;
#endif

void emit(uint lor, float weight);

void load_targets(uint image_index, Image image, Module primary)
{
    uint first = uint(image.place.w);
    if (gl_LocalInvocationIndex == 0u) {
        int count = 0;
        while (count < LR_MAX_TARGETS && first + uint(count) < num_draws && draws[first + uint(count)].x == image_index)
            count++;
        num_targets = count;
#ifdef HIDING
        int before = 0;
        while (before < count && (draws[first + uint(before)].y & LR_BEFORE_PRIMARY) != 0u) before++;
        first_secondary = before;
#endif
    }
    barrier();
    for (int k = int(gl_LocalInvocationIndex); k < num_targets; k += LR_GROUP_SIZE)
        targets[k] = make_target(image, primary, draws[first + uint(k)].y);
    barrier();
}

// The workgroup's image, and the thread's primary crystal.
struct View {
    vec3 point;   // sample point
    vec3 centre;  // vector from the point to the primary's centre
    vec3 u, v;    // the primary's axes
    vec2 offset;  // coordinates of the primary's centre along u and v
    float height; // height of the point over the primary's plane
    vec2 face;
    ivec2 size; // crystals along u and v
    int module;
    ivec2 pq;
    vec2 crystal_mm; // centre of the thread's crystal pq, relative to the module's centre
};

View make_view(Image image, Module primary)
{
    View view;
    view.point = image.point_scale.xyz;
    view.centre = to_centre(image, primary);
    view.u = primary.u_face_u.xyz;
    view.v = primary.v_face_v.xyz;
    view.offset = vec2(dot(view.u, view.centre), dot(view.v, view.centre));
    view.height = -dot(primary.normal.xyz, view.centre);
    view.face = vec2(primary.u_face_u.w, primary.v_face_v.w);
    view.size = primary.crystals.xy;
    view.module = image.place.x;
    return view;
}

void set_crystal(inout View view, int crystal, vec2 pitch)
{
    view.pq = ivec2(crystal % view.size.x, crystal / view.size.x);
    view.crystal_mm = (vec2(view.pq) - 0.5 * vec2(view.size - 1)) * pitch;
}

bool target_allows(Target target, View view, ivec2 rs)
{
    Mask mask = Mask(target.mask.x, target.mask.y, target.mask.z, view.module > target.module.w);
    return in_coincidence(mask, view.pq, view.size, rs, target.module.xy);
}

uint target_lor(Target target, View view, ivec2 rs)
{
    uint a = uint(view.pq.y * view.size.x + view.pq.x);
    uint b = uint(rs.y * target.module.x + rs.x);
    return target.mask.w +
           (view.module < target.module.w ? a * uint(target.module.z) + b : b * uint(view.size.x * view.size.y) + a);
}

float view_survival(View view, vec2 at, float t)
{
#ifdef ABSORPTION
    vec3 to_hit = view.centre + at.x * view.u + at.y * view.v;
    vec3 start = view.point - mu_origin_mm.xyz;
    return survival((start + to_hit) * mu_per_mm.xyz, (start - t * to_hit) * mu_per_mm.xyz, (1.0 + t) * length(to_hit),
                    mu_steps);
#else
    return 1.0;
#endif
}

#ifdef PENETRATION
#include "correspondence/visit_penetration.glsl"
#elif defined(EXACT)
#include "correspondence/visit_exact.glsl"
#else
#include "correspondence/visit_sampled.glsl"
#endif

// Emits every element of the workgroup's image.
void visit_image(uint image_index)
{
    Image image = images[image_index];
    Module primary = modules[image.place.x];
    vec2 pitch = vec2(primary.centre_pitch_u.w, primary.rest_pitch_v.w);
    load_targets(image_index, image, primary);
    View view = make_view(image, primary);
#ifdef PENETRATION
    visit_primary(view, image, primary);
#else
#ifdef HIDING
    ivec2 range = image.place.yz;
#else
    ivec2 range = ivec2(0, primary.crystals.w);
#endif
    for (int k = range.x + int(gl_LocalInvocationIndex); k < range.y; k += LR_GROUP_SIZE) {
        set_crystal(view, k, pitch);
        visit_crystal(view);
    }
#endif
#ifdef LIMITED_LOOPS
    check_loops();
#endif
}
