// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Enables the driver's atomic additions to a storage buffer: floats if GL_NV_shader_atomic_float is
// defined, and integers of 64 bits if LR_HAS_ATOMIC64 is defined. Include this file first, because
// #extension must precede all other code.
#extension GL_NV_shader_atomic_float : enable
#extension GL_ARB_gpu_shader_int64 : enable
#extension GL_NV_shader_atomic_int64 : enable
#if defined(GL_ARB_gpu_shader_int64) && defined(GL_NV_shader_atomic_int64)
#define LR_HAS_ATOMIC64
#endif
