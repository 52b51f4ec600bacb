// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Tests whether a LOR is in coincidence (docs/method/common.md, "LORs and coincidence"), with the masks that
// src/model/scanner/coincidence.c computes.
#include "correspondence/lor.glsl"
#include "correspondence/mask.glsl"

// The mask of a pair of modules, and the order of its crystals.
struct Mask {
    uint kind; // MaskEntry.kind; LR_NONE = no LOR of the pair is in coincidence
    uint offset_a, offset_b;
    bool swapped; // true if the primary is the pair's higher module
};

Mask pair_mask(uint primary, uint secondary)
{
    uint mask = pairs[primary * uint(modules.length()) + secondary].mask;
    if (mask == LR_NONE) return Mask(LR_NONE, 0u, 0u, false);
    MaskEntry entry = mask_entries[mask];
    return Mask(entry.kind, entry.offset_a, entry.offset_b, primary > secondary);
}

// True if crystal pq of the primary and crystal rs of the secondary are in coincidence.
bool in_coincidence(Mask mask, ivec2 pq, ivec2 primary_size, ivec2 rs, ivec2 secondary_size)
{
    if (mask.kind == 0u || mask.kind == LR_NONE) return mask.kind == 0u;
    MaskEntry entry = MaskEntry(mask.kind, mask.offset_a, mask.offset_b, 0u);
    return mask.swapped ? mask_bits(entry, rs, secondary_size, pq, primary_size)
                        : mask_bits(entry, pq, primary_size, rs, secondary_size);
}
