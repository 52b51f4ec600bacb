#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Converts LOR values from LOR order to stack order, or back (TO_LOR_ORDER). LORs that are not in
// coincidence get 0.
//
// reads:    column modules, pairs and stacks, masks, LOR values in one order (ONES: all are 1)
// writes:   LOR values in the other order
// shape:    groups (values of a pair / group size, 1, pairs of modules)
// variants: MASKS=1; ONES=1; TO_LOR_ORDER=1 MASKS=1
#include "correspondence/columns/scene.glsl"
#include "correspondence/columns/stacks.glsl"
#include "correspondence/mask.glsl"

#ifndef ONES
layout(std430, binding = LR_BIND_SUMS) readonly buffer From
{
    float from[];
};
#endif
layout(std430, binding = LR_BIND_OUTPUT) writeonly buffer To
{
    float to[];
};

bool in_coincidence(ColumnPair pair, ivec2 on_i, ivec2 on_j)
{
#ifdef MASKS
    ColumnModule i = column_modules[pair.i], j = column_modules[pair.j];
    bool turned = i.counts.z != 1; // true if the scanner numbers crystals along the column first
    return pair.mask == LR_NONE ||
           (turned ? mask_bits(mask_entries[pair.mask], on_i.yx, i.counts.yx, on_j.yx, j.counts.yx)
                   : mask_bits(mask_entries[pair.mask], on_i, i.counts.xy, on_j, j.counts.xy));
#else
    return true;
#endif
}

// Crystals have two numbers, across and along the column, as in LOR order. This function converts the second number
// from the scanner's direction to the column's direction, or back.
int along(ColumnModule module, int crystal)
{
    return module.centre.w > 0.0 ? crystal : module.counts.y - 1 - crystal;
}

uint file_place(ColumnPair pair, ivec2 on_i, ivec2 on_j)
{
    ivec4 i = column_modules[pair.i].counts, j = column_modules[pair.j].counts;
    int a = on_i.x * i.z + on_i.y * i.w, b = on_j.x * j.z + on_j.y * j.w;
    return pair.first + uint(a * j.x * j.y + b);
}

uint stack_place(ColumnPair pair, StackMember member, ivec2 on_i, ivec2 on_j)
{
    StackPair stacks = stack_pairs[member.pair];
    bool swapped = member.swapped != 0u;
    ColumnModule a = column_modules[swapped ? pair.j : pair.i];
    ColumnModule b = column_modules[swapped ? pair.i : pair.j];
    ivec2 on_a = swapped ? on_j : on_i, on_b = swapped ? on_i : on_j;
    int q = int(member.place_a) * a.counts.y + along(a, on_a.y);
    int s = int(member.place_b) * b.counts.y + along(b, on_b.y);
    return stacks.first + uint(((on_a.x * b.counts.x + on_b.x) * stacks.count_a + q) * stacks.count_b + s);
}

// Copies a value to LOR order. Neighbouring threads have neighbouring values in LOR order, so that they write to
// neighbouring addresses.
void move_to_file(ColumnPair pair, StackMember member, int k)
{
#ifdef TO_LOR_ORDER
    ColumnModule i = column_modules[pair.i], j = column_modules[pair.j];
    int num_j = j.counts.x * j.counts.y;
    ivec2 on_i = crystal_numbers(i, k / num_j), on_j = crystal_numbers(j, k % num_j);
    to[pair.first + uint(k)] = in_coincidence(pair, on_i, on_j) ? from[stack_place(pair, member, on_i, on_j)] : 0.0;
#endif
}

// Copies a value to stack order. Neighbouring threads have neighbouring values in stack order, so that they write to
// neighbouring addresses.
void move_to_stack(ColumnPair pair, StackMember member, int k)
{
    ivec4 i = column_modules[pair.i].counts, j = column_modules[pair.j].counts;
    bool swapped = member.swapped != 0u;
    ivec4 a = swapped ? j : i, b = swapped ? i : j;
    int pr = k / (a.y * b.y), qs = k % (a.y * b.y);
    ivec2 on_a = ivec2(pr / b.x, qs / b.y), on_b = ivec2(pr % b.x, qs % b.y);
    ivec2 on_i = swapped ? on_b : on_a, on_j = swapped ? on_a : on_b;
    bool counts = in_coincidence(pair, on_i, on_j);
#ifdef ONES
    to[stack_place(pair, member, on_i, on_j)] = counts ? 1.0 : 0.0;
#else
    to[stack_place(pair, member, on_i, on_j)] = counts ? from[file_place(pair, on_i, on_j)] : 0.0;
#endif
}

void main()
{
    int index = first.x + int(gl_WorkGroupID.z);
    ColumnPair pair = column_pairs[index];
    ivec4 i = column_modules[pair.i].counts, j = column_modules[pair.j].counts;
    for (int k = int(gl_GlobalInvocationID.x); k < i.x * i.y * j.x * j.y; k += int(gl_NumWorkGroups.x) * COLUMN_GROUP) {
#ifdef TO_LOR_ORDER
        move_to_file(pair, stack_members[index], k);
#else
        move_to_stack(pair, stack_members[index], k);
#endif
    }
}
