/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_MODEL_ROWS_H
#define LR_MODEL_ROWS_H

#include <lr/grid.h>

struct lr_row_block_sink; /* model/lors/row_block.h */

/* Which rows of a matrix are wanted: voxels of a grid, each the mean over its sample points, or
 * single points. Exactly one of grid and points_mm is set. */
struct lr_rows {
    const lr_grid *grid;
    int samples[3];
    const double (*points_mm)[3]; /* [end] */
    int64_t begin, end;
    const int32_t *pairs; /* [num_pairs], ascending: elements of other module pairs are not wanted;
                             NULL = all. A backend may pass over it (operator/backend.h). */
    int64_t num_pairs;
    const struct lr_row_block_sink *blocks; /* takes whole rows for the sink; NULL = nothing does. A
                                               backend may pass over it. */
};

/* Sample points per row. */
static inline int lr_rows_per_row(const struct lr_rows *rows)
{
    return rows->grid ? rows->samples[0] * rows->samples[1] * rows->samples[2] : 1;
}

static inline void lr_rows_point(const struct lr_rows *rows, int64_t row, int index, double point_mm[3])
{
    if (rows->grid) {
        const int *num = rows->samples;
        const lr_sample sample = {row, {num[0], num[1], num[2]}, index};
        lr_grid_sample_point(rows->grid, &sample, point_mm);
    } else {
        for (int k = 0; k < 3; k++) point_mm[k] = rows->points_mm[row][k];
    }
}

#endif
