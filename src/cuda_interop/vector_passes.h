/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Parameters of kernels on vectors, and their launches. Launches return a cudaError_t, and do not wait. */
#pragma once

#include "common/bindings.h"
#include "device/vector.h"

#include <stdbool.h>

/* Exchanges between processes from the memory of CUDA devices (link.c). */
extern const struct lr_link_fns lr_cuda_link_fns;

#ifdef __cplusplus
extern "C" {
#endif

/* The largest number of blocks of a pass. Blocks are called groups here. */
enum { LR_CUDA_VECTOR_GROUPS = 1024 };

/* A pass over vectors. Each of n threads takes every n-th number. Addresses are those of the device. */
typedef struct lr_cuda_vector_pass {
    int op;                        /* used by LR_CUDA_VECTOR_APPLY only */
    lr_precision precision, other; /* precision: of y; other: of the inputs */
    void *y;
    const void *in[LR_VECTOR_INPUTS]; /* NULL = no such input */
    double scalar;                    /* scalar operand, or the number to fill in */
    double lowest;                    /* floor of BSREM */
    int64_t count;
    double (*sums)[LR_VECTOR_NUM_SUMS]; /* [groups]; NULL = the pass makes no sums */
} lr_cuda_vector_pass;

/* A pass in which one group adds up the sums of all groups of an earlier pass. */
typedef struct lr_cuda_join_pass {
    double (*groups)[LR_VECTOR_NUM_SUMS]; /* [num_groups] */
    double (*sums)[LR_VECTOR_NUM_SUMS];   /* [1] */
    int num_groups;
    bool has_largest;
} lr_cuda_join_pass;

/* Relative differences (lr_relative_differences). Each of n threads takes every n-th number. */
typedef struct lr_cuda_differences_pass {
    lr_differences what;
    lr_precision precision;
    void *y;
    const void *x, *kappa; /* kappa: NULL = 1 everywhere */
    int size[3];
    double weights[8];
    double gamma, epsilon, scale;
} lr_cuda_differences_pass;

/* Convolution (lr_convolution). Each of n threads takes every n-th number. */
typedef struct lr_cuda_convolve_pass {
    lr_precision precision;
    void *y;
    const void *x;
    int size[3], axis, reach;
    double weights[LR_CONVOLUTION_REACH];
} lr_cuda_convolve_pass;

/* Sums over ranks (lr_vector_terms) of `count` numbers. Each of n threads takes every n-th number. */
typedef struct lr_cuda_terms_pass {
    lr_precision precision;
    void *y;
    const void *pieces;
    int64_t count, stride;
    int own, num;
} lr_cuda_terms_pass;

/* Returns the number of groups of a pass. It depends only on the count, so that sums have the same bits in every
 * run. */
static inline int lr_cuda_vector_groups(int64_t count)
{
    const int64_t groups = (count + LR_VECTOR_GROUP - 1) / LR_VECTOR_GROUP;
    const int64_t most = LR_CUDA_VECTOR_GROUPS;
    return (int)(groups < most ? groups : most);
}

/* Returns zero if the current device can run the compiled kernels; otherwise the error of a launch. */
int lr_cuda_try_vectors(void);

/* The work of a pass:
 *   FILL    sets y to the scalar
 *   APPLY   the operation
 *   SUMS    sums of y and in[0] (struct lr_vector_sums, in the order of its fields)
 *   DIVIDE  y: estimates; in[0]: measured numbers; in[1]: additive term (struct lr_poisson_ratio). The sums are those
 *           of struct lr_poisson_fit. Numbers are float32. */
enum lr_cuda_vector_work {
    LR_CUDA_VECTOR_FILL,
    LR_CUDA_VECTOR_APPLY,
    LR_CUDA_VECTOR_SUMS,
    LR_CUDA_VECTOR_DIVIDE,
    LR_CUDA_NUM_VECTOR_WORKS
};

/* Launches a pass. stream: a cudaStream_t. The count must be positive. */
int lr_cuda_launch_vector(enum lr_cuda_vector_work work, const lr_cuda_vector_pass *pass, void *stream);
int lr_cuda_launch_vector_join(const lr_cuda_join_pass *pass, void *stream);

int lr_cuda_launch_differences(const lr_cuda_differences_pass *pass, void *stream);
int lr_cuda_launch_convolve(const lr_cuda_convolve_pass *pass, void *stream);
int lr_cuda_launch_terms(const lr_cuda_terms_pass *pass, void *stream);

#ifdef __cplusplus
}
#endif
