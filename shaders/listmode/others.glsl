// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Lines that are kept whose values are not of the usual size: first those without time of flight, then the
// others. Includers have listmode/scale.glsl.
layout(std430, binding = LR_BIND_LIST_OTHERS) buffer Others {
    uint others[];
};
