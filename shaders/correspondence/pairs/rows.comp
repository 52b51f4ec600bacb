#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Lists the elements of single points for pairs of modules, in any order.
//
// reads: modules, pairs, masks, points
// writes: the number of elements, and the elements that fit into the list: point, LOR, bits of the
//           weight
// shape: groups (points / group size, pairs)
// variants: ; MASKS=1; HORIZON=1; NEAR=1; HORIZON=1 NEAR=1 MASKS=1
#include "correspondence/pairs/pairs.glsl"

layout(std430, binding = LR_BIND_PAIR_POINTS) readonly buffer Points
{
    dvec4 points[];
};
layout(std430, binding = LR_BIND_OUTPUT) buffer Elements
{
    uint num_elements;
    uint unused_words[3];
    uvec4 elements[]; // point, LOR, bits of the weight, unused
};

uint own_point_index;

void emit(uint lor, float weight)
{
    uint place = atomicAdd(num_elements, 1u);
    if (place < uint(list.z)) elements[place] = uvec4(own_point_index, lor, floatBitsToUint(weight), 0u);
}

void main()
{
    own_point_index = uint(list.x) + gl_GlobalInvocationID.x;
    if (own_point_index < uint(list.y))
        visit_pair(module_pairs[range.x + int(gl_WorkGroupID.y)], points[own_point_index].xyz);
}
