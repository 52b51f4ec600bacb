// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Pairs of stacks a and b, as src/correspondence/compute/columns/stacks.c uploads them. Their values are in stack
// order: the value of transaxial crystals p of a and r of b, and axial crystals Q of a and S of b, is at index first +
// ((p nr + r) nQ + Q) nS + S. Q and S count the crystals of the whole stack along the column.

// Stacks a and b: their lowest modules along the column, their numbers of axial cells, and the
// indices at which the middles of these cells begin.
struct StackPair {
    uint a, b;
    int count_a, count_b;
    int first_a, first_b;
    uint first;
    uint present; // bit (m nb + n) mod 32 is set if the window has the pair of module m of stack a and module n of
                  // stack b
    uint image;   // the pair onto which half a turn about the grid's middle maps this pair; LR_NONE = it is not in the
                  // window
    uint image_first;
    uint image_swapped; // 1 if half a turn maps stack a to the image's stack b
    uint unused;
};
layout(std430, binding = LR_BIND_COLUMN_STACKS) readonly buffer StackPairs
{
    StackPair stack_pairs[];
};

// True if this part has LORs of these transaxial crystals, or of the crystals' images after half a turn.
bool has_taken(StackPair stacks, ivec2 pr)
{
    bool taken = is_taken(stacks.a, stacks.b, pr);
#ifdef HALF_TURN
    if (!taken && stacks.image != LR_NONE) {
        StackPair image = stack_pairs[stacks.image];
        taken = is_taken(image.a, image.b, stacks.image_swapped != 0u ? pr.yx : pr);
    }
#endif
    return taken;
}

// Index of the first value in the block of the image after half a turn, for transaxial crystals p and r.
uint image_block(StackPair pair, ivec2 pr, ivec2 across)
{
    int place = pair.image_swapped != 0u ? pr.y * across.x + pr.x : pr.x * across.y + pr.y;
    return pair.image_first + uint(place * pair.count_a * pair.count_b);
}

// Index, within its block, of the image of cells Q and S after half a turn.
int image_place(StackPair pair, ivec2 qs)
{
    return pair.image_swapped != 0u ? qs.y * pair.count_a + qs.x : qs.x * pair.count_b + qs.y;
}

// The position of a module pair in its pair of stacks.
struct StackMember {
    uint pair;    // number of the pair of stacks
    uint place_a; // places of the pair's modules in stacks a and b
    uint place_b;
    uint swapped; // 1 if the module with the lower number belongs to stack b
};
layout(std430, binding = LR_BIND_COLUMN_LIST) readonly buffer StackMembers
{
    StackMember stack_members[]; // in the order of column_pairs
};
