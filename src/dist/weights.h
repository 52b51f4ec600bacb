/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Weights of guesses. A guess is the image of a single rank (lr/recon.h). Source: section V of Toth, Magdics and
 * Szirmay-Kalos, Fast System Matrix Generation on a GPU Cluster. */
#pragma once

#include <lr/log.h>

/* The least-squares problem of a weighted sum of guesses. */
struct lr_gram {
    int count;          /* number of guesses */
    const double *gram; /* B: [count][count] */
    const double *with; /* b: [count] */
    double square;      /* sum of the squared data */
};

/* Solves [B 1; 1^T 0] [weights; multiplier] = [b; 1]. The weights have the sum 1, and they minimise the distance
 * between the weighted sum of the guesses' projections and the data. If B does not determine the weights, they have
 * minimum norm. *condition: condition number of this matrix, with B scaled so that its largest element is 1; infinite
 * if it is singular. weights: [count]. errors: LR_NO_DEVICE without LAPACKE; LR_BAD_INPUT if all guesses are 0;
 * LR_FAILED. */
lr_status lr_gram_weights(const struct lr_gram *gram, double *weights, double *condition, const lr_log *log);

/* Returns |data - weighted sum of the guesses' projections|^2. */
double lr_gram_residual(const struct lr_gram *gram, const double *weights);
