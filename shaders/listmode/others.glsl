// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Kept lines with values of unusual size: first the lines without TOF, then those with TOF. Needs listmode/scale.glsl
// before it.
layout(std430, binding = LR_BIND_LIST_OTHERS) buffer Others
{
    uint others[];
};
