// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Passes over images that stay on the device, in the order in which they are projected.
#include "common/bindings.h"

layout(local_size_x = LR_GROUP_SIZE) in;

layout(std430, binding = LR_BIND_KEPT_IMAGE) readonly buffer Image {
    float image[];
};
layout(std430, binding = LR_BIND_KEPT_OTHER) readonly buffer Other {
    float other[];
};

layout(std140, binding = LR_BIND_PASS) uniform Pass {
    uvec4 extent;  // voxels along x, y, z, and all
    uvec4 strides; // between neighbours along x, y, z
};

uint num_threads()
{
    return gl_NumWorkGroups.x * uint(LR_GROUP_SIZE);
}
