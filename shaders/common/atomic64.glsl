// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Atomic additions of the driver to a storage buffer: floats, where GL_NV_shader_atomic_float is defined, and
// integers of 64 bits, where LR_HAS_ATOMIC64 is. Include first: #extension comes before everything else.
#extension GL_NV_shader_atomic_float : enable
#extension GL_ARB_gpu_shader_int64 : enable
#extension GL_NV_shader_atomic_int64 : enable
#if defined(GL_ARB_gpu_shader_int64) && defined(GL_NV_shader_atomic_int64)
#define LR_HAS_ATOMIC64
#endif
