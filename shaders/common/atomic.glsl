// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Atomic addition to a float in a storage buffer: by the driver's extension if there is one, otherwise by compare and
// swap. Include this file first, because #extension must precede all other code. LR_ATOMIC is the type of the buffer's
// elements.
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
