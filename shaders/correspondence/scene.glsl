// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The scanner as src/correspondence/scene.c uploads it. Lengths are in mm, and vectors in the scanner's frame.
// RAYS: lines of a crystal along each of its axes, in sampled mode.
#include "common/bindings.h"

#ifndef RAYS
#define RAYS 4
#endif

struct Module {
    vec4 centre_pitch_u; // xyz: centre of the detection plane; w: pitch along u
    vec4 rest_pitch_v;   // xyz: rounding error of the centre; w: pitch along v
    vec4 u_face_u;
    vec4 v_face_v;
    vec4 normal;
    ivec4 crystals; // x, y: nu, nv; z: number of the first crystal in the scanner; w: nu * nv
};

layout(std430, binding = LR_BIND_MODULES) readonly buffer Modules
{
    Module modules[];
};

// The picture that one sample point sees in the window of one primary module.
struct Image {
    vec4 point_scale; // xyz: sample point; w: factor of the weights in forward projection
    vec3 rest;        // rounding error of the point
    uint row;         // row of the request: the voxel
    ivec4 place;      // x: primary module; y, z: left and lower texel of the image's tile in the atlas, or with HIDING
                      // the range y .. z - 1 of the primary's crystals; w: first draw
};

layout(std430, binding = LR_BIND_IMAGES) readonly buffer Images
{
    Image images[];
};

// The difference a - b of two vectors. Each vector is given as floats and their rounding errors. The relative error of
// the result is 1e-7.
vec3 difference(vec3 a, vec3 a_rest, vec3 b, vec3 b_rest)
{
    precise vec3 leading = a - b;
    precise vec3 trailing = a_rest - b_rest;
    precise vec3 sum = leading + trailing;
    return sum;
}

// Vector from the image's sample point to the centre of a module's detection plane.
vec3 to_centre(Image image, Module module)
{
    return difference(module.centre_pitch_u.xyz, module.rest_pitch_v.xyz, image.point_scale.xyz, image.rest.xyz);
}
