#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Back-projection of single LORs (correspondence/columns/list.glsl).
//
// reads:     column modules, pairs and points, masks, values of the list, whose magnitudes are at
//            most 1
// adds to:   voxel sums [across 1][across 0][along] in fixed point
// shape:     LR_LIST_SHARE threads for each LOR
// invariant: sums do not depend on the order of their terms
// variants:  EXACT=1; EXACT=1 NEAR=1 STEEP=1; RAYS=4; EXACT=1 MASKS=1
#include "correspondence/columns/list.glsl"
#define FIXED_BINDING LR_BIND_COLUMN_IMAGE
#include "common/fixed.glsl"

float value; // the LOR's value, divided by the number of points of a voxel

void take(int voxel, float weight)
{
    fixed_add(uint(voxel), weight * value);
}

void main()
{
    int at = entry_at();
    if (at < count.x) {
        Entry entry = entries[at];
        value = entry.value / float(num_samples.x * num_samples.y * num_samples.z);
        visit_entry(entry);
    }
    check_loops();
}
