#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Counts values by exponent. USUAL: finds the usual exponent. With window.x = 0, this is the smallest exponent e that
// at most size.w values exceed. Otherwise it is the largest exponent of values up to e + window.x, but at least e.
// USUAL also finds the smallest exponent of all values.
//
// reads: values window.w .. window.w + size.w - 1; with USUAL the counts, and the number of values
//         that may be larger
// writes: the counts; with USUAL scale.usual and scale.least
// shape: each thread takes every n-th value; with USUAL one group
// variants: USUAL=1
#include "listmode/pass.glsl"
#include "listmode/scale.glsl"

layout(local_size_x = LR_EVENTS_GROUP) in;

#ifdef USUAL
shared uint smallest, largest, first, counts[256];

// Afterwards, counts[k] is the number of values whose exponent is at least k.
void add_up(uint k)
{
    for (uint step = 1u; step < 256u; step *= 2u) {
        barrier();
        uint sum = counts[k] + (k + step < 256u ? counts[k + step] : 0u);
        barrier();
        counts[k] = sum;
    }
    barrier();
}

void main()
{
    uint k = gl_LocalInvocationIndex;
    if (k == 0u) {
        smallest = 255u;
        largest = 0u;
        first = 255u;
    }
    counts[k] = exponents[k];
    add_up(k);
    if (k == 255u || counts[k + 1u] <= uint(size.w)) atomicMin(smallest, k);
    barrier();
    if (exponents[k] > 0u && k <= smallest + uint(window.x)) atomicMax(largest, k);
    if (exponents[k] > 0u) atomicMin(first, k);
    barrier();
    if (k == 0u) {
        usual = max(smallest, largest);
        least = min(first, usual);
    }
}
#else
layout(std430, binding = LR_BIND_LIST_VALUES) readonly buffer Values
{
    float values[];
};

shared uint counts[256];

void main()
{
    uint all = gl_NumWorkGroups.x * LR_EVENTS_GROUP, own = gl_LocalInvocationIndex;
    counts[own] = 0u;
    barrier();
    for (uint k = gl_GlobalInvocationID.x; k < uint(size.w); k += all)
        atomicAdd(counts[exponent_of(values[uint(window.w) + k])], 1u);
    barrier();
    if (own > 0u && counts[own] > 0u) atomicAdd(exponents[own], counts[own]);
}
#endif
