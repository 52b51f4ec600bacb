/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "matrix.h"

#include <stdlib.h>

/* All pairs, for a share of them to be some of. */
static lr_status list_pairs(struct matrix_share *share, const struct setup *setup)
{
    const int64_t num = setup->lors->num_pairs;
    share->part_pairs = malloc((size_t)num * sizeof(*share->part_pairs));
    if (share->part_pairs == NULL) return report_error(setup->report, LR_FAILED, "no memory for a list of pairs");
    for (int64_t k = 0; k < num; k++) share->part_pairs[k] = (int32_t)k;
    return LR_OK;
}

/* Rows of LORs: entries of a list of LORs, or of pairs. */
static lr_status cut_lors(struct matrix_share *share, const struct setup *setup, struct matrix_choice *choice,
                          const int64_t range[2])
{
    if (choice->part_lors != NULL) {
        choice->part_lors += range[0];
        choice->part = (lr_selection){.lors = choice->part_lors, .num_lors = range[1] - range[0]};
        share->rows_before = range[0];
        return LR_OK;
    }
    if (choice->part_pairs == NULL) {
        CLI_TRY(list_pairs(share, setup));
        choice->part_pairs = share->part_pairs;
    }
    const lr_selection before = {.pairs = choice->part_pairs, .num_pairs = range[0]};
    share->rows_before = range[0] > 0 ? lr_selection_count(setup->lors, &before) : 0;
    choice->part_pairs += range[0];
    choice->part = (lr_selection){.pairs = choice->part_pairs, .num_pairs = range[1] - range[0]};
    return LR_OK;
}

static void cut_voxels(struct matrix_share *share, struct matrix_choice *choice, const int64_t range[2])
{
    share->rows_before = range[0];
    if (choice->voxels != NULL) {
        choice->voxels += range[0];
        choice->num_voxels = range[1] - range[0];
        return;
    }
    choice->end = choice->begin + range[1];
    choice->begin += range[0];
}

lr_status matrix_share_cut(struct matrix_share *share, const struct matrix_choice *whole, const struct setup *setup,
                           struct matrix_choice *choice)
{
    int64_t range[2];
    *choice = *whole;
    if (share->parts == 0) return LR_OK;
    const lr_rows_share of = {.work = {.choice = {.begin = whole->begin,
                                                  .end = whole->end,
                                                  .voxels = whole->voxels,
                                                  .num_voxels = whole->num_voxels,
                                                  .part = &whole->part},
                                       .by_lor = whole->by_lor},
                              .number = share->number,
                              .parts = share->parts,
                              .log = &setup->report->log};
    CLI_TRY(lr_rows_share_range(setup->lors, &setup->grid, &of, range));
    if (whole->by_lor) return cut_lors(share, setup, choice, range);
    cut_voxels(share, choice, range);
    return LR_OK;
}

void matrix_share_finish(struct matrix_share *share)
{
    free(share->part_pairs);
    *share = (struct matrix_share){.number = 0};
}
