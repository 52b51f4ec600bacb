#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The largest size of values, as the bits of a float.
//
// reads:  values window.w .. window.w + size.w - 1
// writes: the largest one so far
// shape:  threads in turn
#include "listmode/pass.glsl"
#include "listmode/fixed64.glsl"

layout(local_size_x = LR_EVENTS_GROUP) in;

layout(std430, binding = LR_BIND_LIST_VALUES) readonly buffer Values {
    float values[];
};

shared uint of_group;

void main()
{
    uint most = 0u, all = gl_NumWorkGroups.x * LR_EVENTS_GROUP;
    if (gl_LocalInvocationIndex == 0u) {
        of_group = 0u;
    }
    barrier();
    for (uint k = gl_GlobalInvocationID.x; k < uint(size.w); k += all) {
        most = max(most, floatBitsToUint(values[uint(window.w) + k]) & 0x7fffffffu);
    }
    atomicMax(of_group, most);
    barrier();
    if (gl_LocalInvocationIndex == 0u) {
        atomicMax(largest, of_group);
    }
}
