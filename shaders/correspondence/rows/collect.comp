#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Writes the listed elements to the tables of their rows.
//
// reads:     elements: point, LOR, bits of the weight
// writes:    tables: LOR + 1, 0 = free; values [row][point][slot]; number of listed elements, and
//            number of elements without a slot
// shape:     each thread takes every n-th element
// invariant: if a LOR has several terms for a point, their sum does not depend on their order
// variants:  ; REPEATS=1
#define LIST_GROUP LR_GROUP_SIZE
#include "correspondence/rows/rows.glsl"

layout(std430, binding = LR_BIND_ROWS_LIST) readonly buffer List
{
    uvec4 head;
    uvec4 elements[];
};
layout(std430, binding = LR_BIND_ROWS_KEYS) buffer Keys
{
    uint keys[];
};
layout(std430, binding = LR_BIND_ROWS_STARTS) buffer Starts
{
    uint listed;
    uint misfits;
};
#ifdef REPEATS
#define FIXED_BINDING LR_BIND_ROWS_VALUES
#include "common/fixed.glsl"
#else
layout(std430, binding = LR_BIND_ROWS_VALUES) writeonly buffer Values
{
    float values[];
};
#endif

const uint MOST_TRIES = 100u;

// Finds the slot of a LOR, or takes a free slot. table: index of the first slot of the row's table.
bool find_slot(uint table, uint lor, out uint found)
{
    uint mask = (1u << slot_bits) - 1u;
    uint slot = lor * 2654435769u >> (32u - slot_bits);
    for (uint k = 0u; k < MOST_TRIES; k++) {
        found = table + (slot + k & mask);
        uint key = keys[found];
        if (key == 0u) key = atomicCompSwap(keys[found], 0u, lor + 1u);
        if (key == 0u || key == lor + 1u) return true;
    }
    return false;
}

void main()
{
    uint num_threads = gl_NumWorkGroups.x * uint(LIST_GROUP);
    if (gl_GlobalInvocationID.x == 0u) listed = head.x;
    uint kept = min(head.x, total);
    for (uint k = gl_GlobalInvocationID.x; k < kept; k += num_threads) {
        uvec4 element = elements[k];
        uint point = element.x - first_point;
        uint row = uint((float(point) + 0.5) / float(num_points)); // exact for up to a few thousand points
        uint slot;
        if (!find_slot(row << slot_bits, element.y, slot)) {
            atomicAdd(misfits, 1u);
            continue;
        }
        uint at = slot + ((point - row) << slot_bits);
#ifdef REPEATS
        fixed_add(at, uintBitsToFloat(element.z));
#else
        values[at] = uintBitsToFloat(element.z);
#endif
    }
}
