// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Adds to a float in a storage buffer atomically. LR_ATOMIC_ADD uses the driver's extension if there is one, otherwise
// compare and swap. LR_ATOMIC is the type of the buffer's elements. Include this file first, because #extension must
// precede all other code.
#extension GL_NV_shader_atomic_float : enable
#ifdef GL_NV_shader_atomic_float
#define LR_ATOMIC float
#define LR_ATOMIC_ADD(element, value) atomicAdd(element, value)
#else
#define LR_ATOMIC uint
#define LR_ATOMIC_ADD(element, value)                                                                                  \
    {                                                                                                                  \
        uint old = element;                                                                                            \
        uint seen = ~old;                                                                                              \
        while (seen != old) {                                                                                          \
            seen = old;                                                                                                \
            old = atomicCompSwap(element, seen, floatBitsToUint(uintBitsToFloat(seen) + (value)));                     \
        }                                                                                                              \
    }
#endif
