// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Whether a LOR is in coincidence (docs/method.md, section 2), from the masks that
// src/model/coincidence.c computes. Needs common/lor.glsl before it.

struct MaskEntry {
    uint kind; // 0 all LORs, 1 separable, 2 one bit per LOR
    uint offset_a, offset_b; // words
    uint unused_;
};
layout(std430, binding = LR_BIND_MASK_ENTRIES) readonly buffer MaskEntries {
    MaskEntry mask_entries[];
};
layout(std430, binding = LR_BIND_MASK_WORDS) readonly buffer MaskWords {
    uint mask_words[];
};

bool mask_bit(uint offset, uint index)
{
    return (mask_words[offset + (index >> 5)] >> (index & 31u) & 1u) != 0u;
}

// The mask of a pair of modules, and how it counts crystals.
struct Mask {
    uint kind; // as in MaskEntry; LR_NONE when no LOR of the pair is in coincidence
    uint offset_a, offset_b;
    bool swapped; // whether the primary is the pair's higher module
};

Mask pair_mask(uint primary, uint secondary)
{
    uint mask = pairs[primary * uint(modules.length()) + secondary].mask;
    if (mask == LR_NONE) {
        return Mask(LR_NONE, 0u, 0u, false);
    }
    MaskEntry entry = mask_entries[mask];
    return Mask(entry.kind, entry.offset_a, entry.offset_b, primary > secondary);
}

// Crystals pq of a module of size_i crystals and rs of one of size_j, i being the lower module.
bool mask_bits(Mask mask, ivec2 pq, ivec2 size_i, ivec2 rs, ivec2 size_j)
{
    if (mask.kind == 1u) {
        return mask_bit(mask.offset_a, uint(pq.x * size_j.x + rs.x)) &&
               mask_bit(mask.offset_b, uint(pq.y * size_j.y + rs.y));
    }
    uint a = uint(pq.y * size_i.x + pq.x);
    uint b = uint(rs.y * size_j.x + rs.x);
    return mask_bit(mask.offset_a, a * uint(size_j.x * size_j.y) + b);
}

// Crystal pq of the primary and rs of the secondary.
bool in_coincidence(Mask mask, ivec2 pq, ivec2 primary_size, ivec2 rs, ivec2 secondary_size)
{
    if (mask.kind == 0u || mask.kind == LR_NONE) {
        return mask.kind == 0u;
    }
    return mask.swapped ? mask_bits(mask, rs, secondary_size, pq, primary_size)
                        : mask_bits(mask, pq, primary_size, rs, secondary_size);
}
