#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Lists the elements of images, in any order.
//
// reads: images, draws, scanner, masks, attenuation map
// writes: the number of elements, and the elements that fit into the list
// shape: one group for each image
// variants: RAYS=4; EXACT=1; EXACT=1 HIDING=1; RAYS=4 HIDING=1 LIMITED_LOOPS=1; RAYS=3 ABSORPTION=1
// variants: EXACT=1 HIDING=1 ABSORPTION=1; PENETRATION=1; PENETRATION=1 ABSORPTION=1
#include "correspondence/visit.glsl"

layout(std430, binding = LR_BIND_OUTPUT) buffer Elements
{
    uint count;
    uint unused_[3];
    uvec4 elements[]; // image, LOR, bits of the weight, index of the thread in its group
};

void emit(uint lor, float weight)
{
    if (lor >= num_lors || weight <= 0.0) return;
    uint place = atomicAdd(count, 1u);
    if (place < capacity)
        elements[place] = uvec4(gl_WorkGroupID.x, lor, floatBitsToUint(weight), gl_LocalInvocationIndex);
}

void main()
{
    visit_image(gl_WorkGroupID.x);
}
