// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// LOR numbers and coincidence masks. Needs correspondence/scene.glsl before it.

// Module of each crystal of the scanner.
layout(std430, binding = LR_BIND_CRYSTAL_MODULE) readonly buffer CrystalModule
{
    uint crystal_module[];
};

// A pair of modules: the number of its first LOR within the LOR window, and the index of its mask. For pairs before the
// window, the unsigned number wraps around.
struct Pair {
    uint first_lor;
    uint mask; // LR_NONE = the pair is not in coincidence, or not in the window
};
layout(std430, binding = LR_BIND_PAIRS) readonly buffer Pairs
{
    Pair pairs[];
};

// The number, within the LOR window, of the LOR that joins crystal `a` of module i and crystal `b` of
// module j. LR_NONE if the pair of modules has no LORs.
uint lor_number(uint i, uint a, uint j, uint b)
{
    Pair pair = pairs[i * uint(modules.length()) + j];
    if (pair.mask == LR_NONE) return LR_NONE;
    return pair.first_lor + (i < j ? a * uint(modules[j].crystals.w) + b : b * uint(modules[i].crystals.w) + a);
}
