// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Lines that are kept whose values are not of the usual size: first those without time of flight, then the
// others. Includers have listmode/scale.glsl.
layout(std430, binding = LR_BIND_LIST_OTHERS) buffer Others {
    uint others[];
};

void list_line(uint k, bool has_tof)
{
    uint which = has_tof ? 1u : 0u, slot = atomicAdd(num_others[which], 1u);
    others[which * uint(range.w) + slot] = k;
}
