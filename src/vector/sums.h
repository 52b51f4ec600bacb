/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sums of a device by their names. */
#ifndef LR_VECTOR_SUMS_H
#define LR_VECTOR_SUMS_H

#include "common/bindings.h"
#include "vector/vector.h"

static inline lr_vector_sums lr_vector_name_sums(const double sums[LR_VECTOR_NUM_SUMS])
{
    return (lr_vector_sums){.sum = sums[0],
                            .product = sums[1],
                            .difference = sums[2],
                            .largest = sums[LR_VECTOR_LARGEST],
                            .not_finite = (int64_t)sums[4]};
}

static inline lr_poisson_fit lr_vector_name_fit(const double sums[LR_VECTOR_NUM_SUMS])
{
    return (lr_poisson_fit){.log_likelihood = sums[0],
                            .measured_counts = sums[1],
                            .estimated_counts = sums[2],
                            .left_out_lors = (int64_t)sums[3],
                            .left_out_counts = sums[4]};
}

#endif
