/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the groups of a device's pass have added up, put together on the host in the order of the groups. */
#ifndef LR_VECTOR_SUMS_H
#define LR_VECTOR_SUMS_H

#include "common/bindings.h"
#include "vector/vector.h"

#include <math.h>

/* parts: [groups]; has_largest: they are a vector's sums. */
static inline void lr_vector_join_sums(double sums[LR_VECTOR_NUM_SUMS],
                                       double (*parts)[LR_VECTOR_NUM_SUMS], int groups,
                                       bool has_largest)
{
    for (int group = 0; group < groups; group++) {
        for (int k = 0; k < LR_VECTOR_NUM_SUMS; k++) {
            sums[k] = has_largest && k == LR_VECTOR_LARGEST ? fmax(sums[k], parts[group][k])
                                                            : sums[k] + parts[group][k];
        }
    }
}

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
