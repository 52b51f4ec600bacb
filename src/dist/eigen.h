/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Eigenvalues of small symmetric matrices, by LAPACKE in the plugin of MPI. */
#ifndef LR_DIST_EIGEN_H
#define LR_DIST_EIGEN_H

#include <lr/log.h>

/* matrix: [size][size], symmetric; out, row k is the eigenvector of values[k], which ascend. */
typedef lr_status lr_eigen_fn(double *matrix, double *values, int size);

lr_status lr_eigen_lapacke(double *matrix, double *values, int size);

#endif
