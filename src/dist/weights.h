/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Weights of guesses: Toth, Magdics and Szirmay-Kalos, Fast System Matrix Generation on a GPU Cluster,
 * section V. */
#ifndef LR_DIST_WEIGHTS_H
#define LR_DIST_WEIGHTS_H

#include <lr/log.h>

/* The least squares of a sum of guesses. */
struct lr_gram {
    int count;          /* of guesses */
    const double *gram; /* B: [count][count] */
    const double *with; /* b: [count] */
    double square;      /* of the data */
};

/* [B 1; 1^T 0] [weights; multiplier] = [b; 1]: the weights with sum 1 whose guesses together are nearest to
 * the data, of minimum norm if B does not determine them. *condition: of this matrix, with B scaled so
 * that its largest element is 1; infinite if it is singular. weights: [count].
 * errors: LR_NO_DEVICE without LAPACKE; LR_BAD_INPUT for guesses that are all 0; LR_FAILED. */
lr_status lr_gram_weights(const struct lr_gram *gram, double *weights, double *condition, const lr_log *log);

/* |data - sum of weighted guesses|^2 */
double lr_gram_residual(const struct lr_gram *gram, const double *weights);

#endif
