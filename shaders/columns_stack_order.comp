#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// LOR values from the files' order to that of stacks, or back (TO_FILE); 0 out of coincidence.
//
// reads:    column modules, pairs and stacks, masks, values in one order (ONES: all 1)
// writes:   values in the other
// shape:    groups (values of a pair / group size, 1, pairs of modules)
// variants: MASKS=1; ONES=1; TO_FILE=1 MASKS=1
#define EXACT 1
#include "common/columns.glsl"
#include "common/columns_stacks.glsl"

#ifndef ONES
layout(std430, binding = LR_BIND_SUMS) readonly buffer From {
    float from[];
};
#endif
layout(std430, binding = LR_BIND_OUTPUT) writeonly buffer To {
    float to[];
};

// A crystal of a module: across, and along as the column counts.
ivec2 crystal(ColumnModule module, int across, int along)
{
    return ivec2(across, module.centre.w > 0.0 ? along : module.counts.y - 1 - along);
}

bool in_coincidence(ColumnPair pair, ivec2 on_i, ivec2 on_j)
{
#ifdef MASKS
    ColumnModule i = column_modules[pair.i], j = column_modules[pair.j];
    bool turned = i.counts.z != 1; // crystals are numbered along the column first
    return pair.mask == LR_NONE ||
           (turned ? mask_bits(mask_entries[pair.mask], on_i.yx, i.counts.yx, on_j.yx, j.counts.yx)
                   : mask_bits(mask_entries[pair.mask], on_i, i.counts.xy, on_j, j.counts.xy));
#else
    return true;
#endif
}

uint file_place(ColumnPair pair, ivec2 on_i, ivec2 on_j)
{
    ivec4 i = column_modules[pair.i].counts, j = column_modules[pair.j].counts;
    int a = on_i.x * i.z + on_i.y * i.w, b = on_j.x * j.z + on_j.y * j.w;
    return pair.first + uint(a * j.x * j.y + b);
}

void move(ColumnPair pair, ivec2 on_i, ivec2 on_j, uint stack_place)
{
    bool counts = in_coincidence(pair, on_i, on_j);
#ifdef ONES
    to[stack_place] = counts ? 1.0 : 0.0;
#elif defined(TO_FILE)
    to[file_place(pair, on_i, on_j)] = counts ? from[stack_place] : 0.0;
#else
    to[stack_place] = counts ? from[file_place(pair, on_i, on_j)] : 0.0;
#endif
}

void main()
{
    int index = first.x + int(gl_WorkGroupID.z);
    ColumnPair pair = column_pairs[index];
    StackMember member = stack_members[index];
    StackPair stacks = stack_pairs[member.pair];
    bool swapped = member.swapped != 0u;
    ColumnModule a = column_modules[swapped ? pair.j : pair.i];
    ColumnModule b = column_modules[swapped ? pair.i : pair.j];
    int num_axial = a.counts.y * b.counts.y;
    int end = a.counts.x * b.counts.x * num_axial;
    for (int k = int(gl_GlobalInvocationID.x); k < end;
         k += int(gl_NumWorkGroups.x) * COLUMN_GROUP) {
        int pr = k / num_axial, qs = k % num_axial;
        ivec2 on_a = ivec2(pr / b.counts.x, qs / b.counts.y);
        ivec2 on_b = ivec2(pr % b.counts.x, qs % b.counts.y);
        int at = (pr * stacks.count_a + int(member.place_a) * a.counts.y + on_a.y) * stacks.count_b +
                 int(member.place_b) * b.counts.y + on_b.y;
        on_a = crystal(a, on_a.x, on_a.y);
        on_b = crystal(b, on_b.x, on_b.y);
        move(pair, swapped ? on_b : on_a, swapped ? on_a : on_b, stacks.first + uint(at));
    }
}
