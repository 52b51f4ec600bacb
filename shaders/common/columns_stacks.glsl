// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Pairs of stacks, as src/render/columns_stacks.c uploads them. Their values are in stack order:
// crystals p of a and r of b across, Q of a and S of b along the whole stacks, counted along the
// column, stand at first + ((p nr + r) nQ + Q) nS + S.

// Stacks a and b: their lowest modules along the column, their cells along it, and where the middles
// of those begin.
struct StackPair {
    uint a, b;
    int count_a, count_b;
    int first_a, first_b;
    uint first;
    uint present; // bit (m nb + n) mod 32 where a module pair of places m and n is in the window
};
layout(std430, binding = LR_BIND_COLUMN_STACKS) readonly buffer StackPairs {
    StackPair stack_pairs[];
};

// Where a module pair belongs.
struct StackMember {
    uint pair;    // of stacks
    uint place_a; // of its modules in their stacks
    uint place_b;
    uint swapped; // 1 where the pair's lower module is that of b
};
layout(std430, binding = LR_BIND_COLUMN_LIST) readonly buffer StackMembers {
    StackMember stack_members[]; // of column_pairs
};
