// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Words by which OpenGL, CUDA and C read one text: the files of this folder. They keep to what the three languages
// share: numbers, functions of them, arrays and structs; no swizzles.
#ifndef LR_KERNEL
#ifdef GL_core_profile
#define LR_KERNEL
#define LR_PRECISE precise // forbids fused steps, which would give other bits than the host computes
#else
#ifdef __CUDACC__
#define LR_KERNEL static __host__ __device__ inline
#else
#define LR_KERNEL static inline
#endif
#define LR_PRECISE // compilers get an option for it
#endif
#endif
