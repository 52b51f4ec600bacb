/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of the system matrix: a choice of them, and blocks of many rows as devices make them, for sinks that use
 * several threads. */
#ifndef LR_MODEL_ROWS_H
#define LR_MODEL_ROWS_H

#include <lr/grid.h>
#include <lr/operator.h>

struct lr_packed_element {
    uint32_t lor;
    float value;
};
#if !defined(__cplusplus)
_Static_assert(sizeof(struct lr_packed_element) == 8, "uvec2");
#endif

struct lr_row_extent {
    int64_t row, count;
};

/* Whole rows, ascending. Everything lives during the call that it is handed to. */
struct lr_row_block {
    const struct lr_row_extent *rows; /* [num_rows] */
    int64_t num_rows, num_elements;
    const struct lr_packed_element *elements; /* of the rows, one after the other, each sorted by LOR */
    int threads;                              /* that the sink may use */
};

/* A sink of blocks of rows, used together with a sink of single rows. Rows ascend over both, and either may get the
 * next ones. */
struct lr_row_block_sink {
    lr_status (*take)(void *user, const struct lr_row_block *block);
    void *user;
};

/* A sink that also takes blocks, which lr_operator_rows detects by lr_row_entry_of. */
struct lr_row_entry {
    lr_row_sink rows;
    struct lr_row_block_sink blocks;
};

/* The entry as a sink, as long as it does not move. */
lr_row_sink lr_row_entry_sink(struct lr_row_entry *entry);

/* The sink of blocks that belongs to a sink; NULL: none. */
const struct lr_row_block_sink *lr_row_entry_of(const lr_row_sink *sink);

/* Hands a block to a sink row by row. errors: LR_FAILED if memory runs out, logged, or what the sink says. */
lr_status lr_row_block_unpack(const struct lr_row_block *block, const lr_row_sink *sink, const lr_log *log);

/* The rows of a matrix that are wanted: voxels of a grid, each the mean over its sample points, or single points.
 * Exactly one of grid and points_mm is set. */
struct lr_rows {
    const lr_grid *grid;
    int samples[3];
    const double (*points_mm)[3]; /* [end] */
    int64_t begin, end;
    const int32_t *
        pairs; /* [num_pairs], ascending: elements of other module pairs are not needed; NULL = all. A backend may ignore this (operator/backend.h). */
    int64_t num_pairs;
    const struct lr_row_block_sink
        *blocks; /* takes whole rows for the sink; NULL = nothing does. A backend may ignore this. */
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
