/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Weights of guesses (weights.h). A symmetric linear system is solved by its eigenvectors. */
#include "dist/weights.h"

#include "base/log.h"
#include "base/mem.h"
#include "plugin/plugin.h"

#include <math.h>
#include <stdlib.h>

/* An eigenvalue below zero_share * matrix size * largest eigenvalue is a rounding error and counts as 0. */
static const double zero_share = 1e-14;

lr_status lr_gram_weights(const struct lr_gram *gram, double *weights, double *condition, const lr_log *log)
{
    const int size = gram->count + 1;
    double scale = 0.0;
    for (int k = 0; k < gram->count * gram->count; k++) scale = fmax(scale, fabs(gram->gram[k]));

    const struct lr_mpi_plugin *mpi = lr_plugin_mpi(log);
    if (mpi == NULL || mpi->eigen == NULL) {
        return lr_error(log, LR_NO_DEVICE,
                        "guesses are composed by LAPACKE, without which LORaster was built: "
                        "install liblapacke-dev and build it again");
    }
    if (!(scale > 0.0)) {
        return lr_error(log, LR_BAD_INPUT,
                        "no guess reaches a LOR, so that there is nothing to compose: check that "
                        "grid and data belong together");
    }
    double *matrix = lr_alloc((int64_t)size * size + size, sizeof(*matrix), "weights", log);
    if (matrix == NULL) return LR_FAILED;
    double *values = matrix + size * size;
    for (int n = 0; n < gram->count; n++) {
        for (int g = 0; g < gram->count; g++) matrix[n * size + g] = gram->gram[n * gram->count + g] / scale;
        matrix[n * size + gram->count] = matrix[gram->count * size + n] = 1.0;
    }
    matrix[size * size - 1] = 0.0;

    lr_status status = mpi->eigen(matrix, values, size);
    if (status == LR_OK) {
        /* x = sum of v (v . right) / eigenvalue over all eigenvectors v whose eigenvalue is not about 0. */
        const int count = gram->count;
        double largest = 0.0, smallest = HUGE_VAL;
        for (int n = 0; n < size; n++) {
            largest = fmax(largest, fabs(values[n]));
            smallest = fmin(smallest, fabs(values[n]));
        }
        const double zero = zero_share * size * largest;
        for (int k = 0; k < count; k++) weights[k] = 0.0;
        for (int n = 0; n < size; n++) {
            double along = 0.0;
            for (int k = 0; k < size; k++) along += matrix[n * size + k] * (k < count ? gram->with[k] / scale : 1.0);
            for (int k = 0; fabs(values[n]) > zero && k < count; k++)
                weights[k] += along / values[n] * matrix[n * size + k];
        }
        *condition = smallest > zero ? largest / smallest : HUGE_VAL;

        /* Rounding makes the sum of the weights differ from 1 by about 1e-16 times the condition number. */
        double sum = 0.0;
        for (int k = 0; k < count; k++) sum += weights[k];
        for (int k = 0; k < count; k++) weights[k] += (1.0 - sum) / count;

    } else {
        lr_error(log, status, "LAPACK finds no eigenvalues of the guesses' products");
    }
    free(matrix);
    return status;
}

double lr_gram_residual(const struct lr_gram *gram, const double *weights)
{
    double sum = gram->square;
    for (int k = 0; k < gram->count; k++) {
        sum -= 2.0 * weights[k] * gram->with[k];
        for (int g = 0; g < gram->count; g++) sum += weights[k] * weights[g] * gram->gram[k * gram->count + g];
    }
    return sum;
}
