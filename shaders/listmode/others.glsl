// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Kept lines whose values are not of the usual size: first those without TOF, then those with TOF.
// Include listmode/scale.glsl before it.
layout(std430, binding = LR_BIND_LIST_OTHERS) buffer Others
{
    uint others[];
};
