/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon/level.h"

#include "base/log.h"

#include <math.h>

/* Of all ranks. Numbers that events have are not those of all LORs: their sum is told, or taken as 0. */
static lr_status sum_additive(struct lr_compared *compared, double *sum)
{
    const struct lr_subsets *subsets = compared->subsets;
    const bool of_events = lr_operator_get_info(subsets->params->op)->of_events;
    *sum = of_events ? subsets->params->additive_sum : subsets->additive_counts;
    if (subsets->is_sparse || subsets->interleave > 1 || of_events) return LR_OK;
    for (int k = 0; k < subsets->count; k++) {
        struct lr_compared_values with;
        lr_vector_sums sums;
        LR_TRY(lr_compared_get(compared, k, &with));
        LR_TRY(lr_vector_add_up(&with.additive, NULL, &sums));
        *sum += sums.sum;
    }
    return lr_comm_sum_numbers(subsets->params->comm, sum, 1);
}

static void check_against_counts(const struct lr_subsets *subsets, double additive)
{
    const double counts = subsets->counts, deviation = sqrt(counts);
    if (additive > counts + 5.0 * deviation) {
        lr_warn(subsets->params->log,
                "the additive term adds up to %g counts, more than the %g that were measured, so "
                "that next to nothing is left for the image: is it of this acquisition, in counts?",
                additive, counts);
    }
}

lr_status lr_find_level(struct lr_compared *compared, double seen_counts, double *level)
{
    const double counts = compared->subsets->counts, least = 0.01;
    double additive = 0.0;
    *level = 1.0;
    if (compared->has_additive) {
        LR_TRY(sum_additive(compared, &additive));
        check_against_counts(compared->subsets, additive);
    }
    if (counts > 0.0 && seen_counts > 0.0) *level = fmax(counts - additive, least * counts) / seen_counts;
    return LR_OK;
}
