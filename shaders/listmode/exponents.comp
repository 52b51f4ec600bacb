#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// How large values are: how many of them have which exponent; with USUAL what exponent all but some have.
//
// reads:  values window.w .. window.w + size.w - 1; with USUAL the counts, and how many values may be larger
// writes: the counts; with USUAL scale.usual
// shape:  threads in turn; with USUAL one group
// variants: USUAL=1
#include "listmode/pass.glsl"
#include "listmode/scale.glsl"

layout(local_size_x = LR_EVENTS_GROUP) in;

#ifdef USUAL
shared uint smallest;

void main()
{
    uint k = gl_LocalInvocationIndex, larger = 0u;
    if (k == 0u) {
        smallest = 255u;
    }
    barrier();
    for (uint b = k + 1u; b < 256u; b++) {
        larger += exponents[b];
    }
    if (larger <= uint(size.w)) {
        atomicMin(smallest, k);
    }
    barrier();
    if (k == 0u) {
        usual = smallest;
    }
}
#else
layout(std430, binding = LR_BIND_LIST_VALUES) readonly buffer Values {
    float values[];
};

shared uint counts[256];

void main()
{
    uint all = gl_NumWorkGroups.x * LR_EVENTS_GROUP, own = gl_LocalInvocationIndex;
    counts[own] = 0u;
    barrier();
    for (uint k = gl_GlobalInvocationID.x; k < uint(size.w); k += all) {
        atomicAdd(counts[exponent_of(values[uint(window.w) + k])], 1u);
    }
    barrier();
    if (own > 0u && counts[own] > 0u) {
        atomicAdd(exponents[own], counts[own]);
    }
}
#endif
