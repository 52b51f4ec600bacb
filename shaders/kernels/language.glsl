// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Macros that let OpenGL, CUDA and C compile the same text, namely the files of this folder. These files use only the
// common parts of the languages: numbers, functions of numbers, arrays and structs, but no swizzles. Files with LR_IN,
// LR_INOUT or conversions such as float(k) are only for OpenGL, CUDA and C++. Functions of numbers are called by their
// names in C.
#ifndef LR_KERNEL
#ifdef GL_core_profile
#define LR_KERNEL
#define LR_IN(type) in type
#define LR_INOUT(type) inout type
#define LR_PRECISE precise // forbids fused operations, whose bits would differ from the host's
#define fabsf abs
#define fminf min
#define fmaxf max
#define fabs abs
#define fmin min
#define fmax max
#define power_of_two exp2
#else
#ifdef __CUDACC__
#define LR_KERNEL static __host__ __device__ inline
#else
#define LR_KERNEL static inline
#endif
#define LR_IN(type) const type &
#define LR_INOUT(type) type &
#define LR_PRECISE // the compiler forbids fused operations by an option
#endif
#endif
