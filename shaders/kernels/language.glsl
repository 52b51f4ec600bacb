// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Words with which OpenGL, CUDA and C can read the same text: the files of this folder. These files use only what the
// three languages share: numbers, functions of numbers, arrays and structs; no swizzles.
#ifndef LR_KERNEL
#ifdef GL_core_profile
#define LR_KERNEL
#define LR_PRECISE precise // forbids fused operations, whose bits would differ from the host's
#define fminf min
#define fmaxf max
#define fabsf abs
#define power_of_two exp2
#else
#ifdef __CUDACC__
#define LR_KERNEL static __host__ __device__ inline
#else
#define LR_KERNEL static inline
#endif
#define LR_PRECISE // the compiler forbids fused operations by an option
#endif
#endif
