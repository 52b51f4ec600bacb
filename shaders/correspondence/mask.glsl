// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The bits of coincidence masks that src/model/scanner/coincidence.c computes
// (docs/method/common.md, "LORs and coincidence"). Needs common/bindings.h before it.

struct MaskEntry {
    uint kind;               // 0 = all LORs, 1 = separable, 2 = one bit per LOR
    uint offset_a, offset_b; // words
    uint unused_;
};
layout(std430, binding = LR_BIND_MASK_ENTRIES) readonly buffer MaskEntries
{
    MaskEntry mask_entries[];
};
layout(std430, binding = LR_BIND_MASK_WORDS) readonly buffer MaskWords
{
    uint mask_words[];
};

bool mask_bit(uint offset, uint index)
{
    return (mask_words[offset + (index >> 5)] >> (index & 31u) & 1u) != 0u;
}

// The mask's bit for a LOR: crystal pq of the pair's lower module i, which has size_i crystals, and crystal rs of
// module j, which has size_j crystals.
bool mask_bits(MaskEntry mask, ivec2 pq, ivec2 size_i, ivec2 rs, ivec2 size_j)
{
    if (mask.kind == 1u) {
        return mask_bit(mask.offset_a, uint(pq.x * size_j.x + rs.x)) &&
               mask_bit(mask.offset_b, uint(pq.y * size_j.y + rs.y));
    }
    uint a = uint(pq.y * size_i.x + pq.x);
    uint b = uint(rs.y * size_j.x + rs.x);
    return mask_bit(mask.offset_a, a * uint(size_j.x * size_j.y) + b);
}
