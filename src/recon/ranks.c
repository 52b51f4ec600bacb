/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon/ranks.h"

#include "base/log.h"
#include "base/mem.h"
#include "device/vector.h"

#include <stdlib.h>

lr_status lr_ranks_init(struct lr_ranks *ranks, lr_comm *comm, int64_t num_voxels, const lr_log *log)
{
    const lr_comm_info info = lr_comm_get_info(comm);
    *ranks = (struct lr_ranks){.comm = comm, .size = info.size, .has_slabs = info.size > 1};
    ranks->offsets = lr_alloc((int64_t)info.size + 1, sizeof(*ranks->offsets), "shares of ranks", log);
    if (ranks->offsets == NULL) return LR_FAILED;
    lr_comm_shares(comm, num_voxels, ranks->offsets);
    ranks->begin = ranks->offsets[info.rank];
    ranks->end = ranks->offsets[info.rank + 1];
    return LR_OK;
}

void lr_ranks_finish(struct lr_ranks *ranks)
{
    free(ranks->offsets);
    *ranks = (struct lr_ranks){0};
}

lr_vector lr_ranks_slab(const struct lr_ranks *ranks, const lr_vector *image)
{
    return lr_vector_part(image, ranks->begin, ranks->end - ranks->begin);
}

lr_status lr_ranks_add_update(const struct lr_ranks *ranks, lr_poisson_fit *fit, lr_vector_sums *before,
                              lr_vector_sums *after)
{
    const bool has_sums = before != NULL && ranks->has_slabs;
    double numbers[9] = {fit->log_likelihood, fit->measured_counts, fit->estimated_counts, (double)fit->left_out_lors,
                         fit->left_out_counts};
    double *const sums = numbers + 5;
    if (has_sums) {
        sums[0] = before->product;
        sums[1] = after->sum;
        sums[2] = after->product;
        sums[3] = (double)after->not_finite;
    }
    LR_TRY(lr_comm_sum_numbers(ranks->comm, numbers, has_sums ? 9 : 5));
    *fit = lr_vector_name_fit(numbers);
    if (has_sums) {
        before->product = sums[0];
        after->sum = sums[1];
        after->product = sums[2];
        after->not_finite = (int64_t)sums[3];
    }
    return LR_OK;
}
