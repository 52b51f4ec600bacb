// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Whether the driver adds to integers of 64 bits in a storage buffer at once: LR_HAS_ATOMIC64 is then defined.
// Include first: #extension comes before everything else.
#extension GL_ARB_gpu_shader_int64 : enable
#extension GL_NV_shader_atomic_int64 : enable
#if defined(GL_ARB_gpu_shader_int64) && defined(GL_NV_shader_atomic_int64)
#define LR_HAS_ATOMIC64
#endif
