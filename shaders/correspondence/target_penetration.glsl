// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Modules as boxes of crystals, for visit.glsl with PENETRATION (docs/method/correspondence.md, "Penetration"). The
// coordinates of a module are u, v and the depth below its front face, relative to the centre of this face. Needs the
// buffers and the Pass block of visit.glsl before it.

// A module's box. gap_u, gap_v: numbers of strata in a gap between crystals. depth_strata: number of strata along the
// depth. depth: in mm. mu: attenuation of the crystals, 1/mm.
struct Box {
    uint gap_u, gap_v, depth_strata;
    float depth, mu;
};

layout(std430, binding = LR_BIND_BOXES) readonly buffer Boxes
{
    Box boxes[];
};

// A module that lines of the workgroup's image may cross.
struct Target {
    vec4 along_u; // xyz: converts a ray from the primary's frame; w: coordinate of the sample point
    vec4 along_v;
    vec4 along_depth;
    vec4 cells;   // x, y: pitch; z, w: half the face
    ivec4 module; // x, y: crystals along u and v; z: crystals in all; w: module
    uvec4 mask;   // x: kind; y, z: offsets; w: first LOR of the pair in the window
    float depth, mu;
};

// The sample point in a module's coordinates.
vec3 box_point(Image image, Module module)
{
    vec3 centre = to_centre(image, module);
    return vec3(-dot(module.u_face_u.xyz, centre), -dot(module.v_face_v.xyz, centre),
                dot(module.normal.xyz, centre) + detection_depth_mm);
}

Target make_target(Image image, Module primary, uint draw)
{
    uint index = draw & ~LR_ONLY_STOPS;
    Module module = modules[index];
    mat3 axes = mat3(primary.u_face_u.xyz, primary.v_face_v.xyz, -primary.normal.xyz);
    vec3 point = box_point(image, module);
    Mask mask = pair_mask(uint(image.place.x), index);
    Target target;
    target.along_u = vec4(module.u_face_u.xyz * axes, point.x);
    target.along_v = vec4(module.v_face_v.xyz * axes, point.y);
    target.along_depth = vec4(-module.normal.xyz * axes, point.z);
    target.cells =
        vec4(module.centre_pitch_u.w, module.rest_pitch_v.w, 0.5 * module.u_face_u.w, 0.5 * module.v_face_v.w);
    target.module = ivec4(module.crystals.xy, module.crystals.w, index);
    uint pair = uint(image.place.x) * uint(modules.length()) + index;
    target.mask = uvec4(index == draw ? mask.kind : LR_NONE, mask.offset_a, mask.offset_b, pairs[pair].first_lor);
    target.depth = boxes[index].depth;
    target.mu = boxes[index].mu;
    return target;
}
