/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The module pairs that a trial of a backend projects. */
#ifndef LR_OPERATOR_TRIAL_PAIRS_H
#define LR_OPERATOR_TRIAL_PAIRS_H

#include <lr/grid.h>
#include <lr/lors.h>

struct lr_trial_pairs {
    int32_t *pairs; /* [count], ascending; free() */
    int64_t count;
    int64_t num_lors; /* of all of them */
};

/* Every n-th pair, so that they are alike to all of them, with about `most_lors` LORs. With each comes
 * the pair that half a turn about the grid's middle puts in its place, where every module has such an
 * image: backends that work on both at once then run on a part what they run on the whole.
 * errors: LR_FAILED without memory; *chosen is then empty. */
lr_status lr_trial_pairs_choose(const lr_lors *lors, const lr_grid *grid, int64_t most_lors,
                                struct lr_trial_pairs *chosen, const lr_log *log);

#endif
