/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Data cut into subsets, and what the updates need to know of each. */
#ifndef LR_RECON_SUBSETS_H
#define LR_RECON_SUBSETS_H

#include <lr/recon.h>

/* LORs first .. first + count - 1, whose values begin at `begin` of the subset's. */
struct lr_lor_run {
    int64_t first, begin, count;
};

struct lr_subset {
    lr_selection pairs;      /* its module pairs, and which of their LORs where these are interleaved; all
                                zero where it is the only subset */
    lr_selection projected;  /* the LORs that are projected: those with counts where data is sparse,
                                else those of the pairs */
    int64_t num_values;      /* how many values they have, those of LORs between them included */
    double counts;           /* sum of y, of all ranks */
    double share;            /* of the values of all ranks that all subsets have */
    float *measured;         /* sparse: y in the order of the values; else NULL */
    float *additive;         /* sparse: b alike; NULL = none */
    struct lr_lor_run *runs; /* dense: [num_runs]; NULL where it is the only subset */
    int64_t num_runs;
    int32_t *pair_list; /* what `pairs` of all that are interleaved point to: the first one's */
    int64_t *lor_list;
};

struct lr_subsets {
    const lr_recon_params *params; /* checked */
    const lr_lors *lors;
    int count, interleave;  /* subset k is part k % interleave of the LORs of group k / interleave */
    struct lr_subset *list; /* [count] */
    int32_t *order;         /* [count] the order in which they are visited */
    bool is_sparse;         /* whether data is */
    double counts;          /* sum of y, of all ranks */
    double own_counts;      /* of this one */
    double additive_counts; /* sparse, interleaved and events: sum of b over all LORs */
    int64_t most_values;    /* largest num_values */
};

/* Cuts up params->data, which is checked, into params->subsets.
 * errors: LR_FAILED without memory; LR_USAGE for subsets that would be empty; LR_BAD_INPUT for a value of the additive source that is not
 * finite or negative; what the source answers. Finish in any case. */
lr_status lr_subsets_init(struct lr_subsets *subsets, const lr_recon_params *params);
void lr_subsets_finish(struct lr_subsets *subsets);

#endif
