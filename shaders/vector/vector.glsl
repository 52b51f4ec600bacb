// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The buffers of a pass over vectors, in the precision REAL. `first` says where each vector begins in the range of its
// buffer.
#include "common/bindings.h"

#ifndef REAL
#define REAL float
#endif

layout(local_size_x = LR_VECTOR_GROUP) in;

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    uvec4 first; // indices in their ranges where y and the inputs begin
    uint count;
    double scalar;
    double lowest; // BSREM's lower bound
};

uint num_threads()
{
    return gl_NumWorkGroups.x * uint(LR_VECTOR_GROUP);
}

bool is_finite(double x)
{
    return (unpackDouble2x32(x).y & 0x7ff00000u) != 0x7ff00000u;
}
