#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The update of EM: image / sensitivity * back-projection.
//
// reads:     image, sensitivity, what was projected back, all in the projector's order
// writes:    the new image; voxels that are not seen keep their value
// shape:     num_groups groups, each thread every so-manieth voxel
#include "common/kept.glsl"

layout(std430, binding = LR_BIND_KEPT_BACK) readonly buffer Back {
    float back[];
};
layout(std430, binding = LR_BIND_KEPT_RESULT) writeonly buffer Result {
    float result[];
};

void main()
{
    for (uint v = gl_GlobalInvocationID.x; v < extent.w; v += num_threads()) {
        result[v] = other[v] > 0.0 ? image[v] / other[v] * back[v] : image[v];
    }
}
