/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The only file that includes lapacke.h; part of the plugin of MPI. */
#include "dist/eigen.h"

#include <lapacke.h>

/* Of a symmetric matrix, rows are columns: LAPACK leaves eigenvectors in columns of its own order, which
 * are rows of ours. */
lr_status lr_eigen_lapacke(double *matrix, double *values, int size)
{
    return LAPACKE_dsyev(LAPACK_COL_MAJOR, 'V', 'U', size, matrix, size, values) == 0 ? LR_OK : LR_FAILED;
}
